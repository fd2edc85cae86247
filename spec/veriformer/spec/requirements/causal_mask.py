"""Requirements of the causal mask (equation 24a)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

causal_mask = templates.of("causal_mask", "24a")

REQUIREMENTS = (
    *causal_mask.standard(
        "contract equation refusals sensitivity numpy_numbers long",
        equation=r"Query $i$ sees key $j$ exactly if $j \le i + n_k - n_q$ and, with a window $w$, "
        "$j > i + n_k - n_q - w$.",
        refusals="Negative lengths and windows below 1 are refused.",
    ),
    causal_mask.wrong(
        "window",
        r"At the edges $n_k \in \{w - 1, w, w + 1\}$ the window holds exactly $w$ keys, the query's own among them.",
        "The same exactly.",
        "window off by one",
        "https://github.com/huggingface/transformers/issues/39408",
    ),
    causal_mask.wrong(
        "nested",
        "Without a window each query sees what the one before it saw, and at most one key more; the last one sees a "
        "key.",
        "The same exactly.",
        "holes in the mask",
    ),
    causal_mask.contract_case(
        "fresh", "A mask belongs to its caller: changing it changes no later one.", "shared result", weight=Weight.LEAK
    ),
    causal_mask.convention(
        "alignment",
        "With lengths that differ, the last query sees the last key.",
        "causal edge at the wrong corner",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        "https://github.com/trymirai/lalamo/pull/200",
        weight=Weight.WRONG,
    ),
)
