"""Requirements of the causal mask (equation 24a)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("causal_mask", ("24a",)),
    templates.equation(
        "causal_mask",
        ("24a",),
        "Query $i$ sees key $j$ exactly if $j \\le i + n_k - n_q$ and, with a window $w$, $j > i + n_k - n_q - w$.",
    ),
    *templates.refusals("causal_mask", "Negative lengths and windows below 1 are refused."),
    templates.sensitivity("causal_mask"),
    templates.numpy_numbers("causal_mask"),
    templates.long("causal_mask"),
    templates.law(
        "causal_mask",
        "window",
        r"At the edges $n_k \in \{w - 1, w, w + 1\}$ the window holds exactly $w$ keys, the query's own among them.",
        "The same exactly.",
        "window off by one",
        equations=("24a",),
        precedents=("https://github.com/huggingface/transformers/issues/39408",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "causal_mask",
        "nested",
        "Without a window each query sees what the one before it saw, and at most one key more; the last one sees a "
        "key.",
        "The same exactly.",
        "holes in the mask",
        equations=("24a",),
        weight=Weight.WRONG,
    ),
    templates.contract_case(
        "causal_mask",
        "fresh",
        "A mask belongs to its caller: changing it changes no later one.",
        "shared result",
        ("24a",),
        weight=Weight.LEAK,
    ),
    templates.convention(
        "causal_mask",
        "alignment",
        "With lengths that differ, the last query sees the last key.",
        "causal edge at the wrong corner",
        ("24a",),
        (
            "https://github.com/Dao-AILab/flash-attention/issues/282",
            "https://github.com/trymirai/lalamo/pull/200",
        ),
        weight=Weight.WRONG,
    ),
)
