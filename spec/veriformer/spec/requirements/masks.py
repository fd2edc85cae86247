"""Requirements of the causal mask (equation 24a)."""

from veriformer.spec.requirements import families

CAUSAL_MASK = (
    families.contract("causal_mask", ("24a",)),
    families.equation(
        "causal_mask",
        ("24a",),
        "Query $i$ sees key $j$ exactly if $j \\le i + n_k - n_q$ and, with a window $w$, $j > i + n_k - n_q - w$.",
    ),
)
