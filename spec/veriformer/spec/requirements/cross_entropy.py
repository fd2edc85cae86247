"""Requirements of cross entropy (equations 2, 38, 48)."""

from veriformer.spec.requirements import families

CROSS_ENTROPY = (
    families.contract("cross_entropy", ("2",)),
    families.equation(
        "cross_entropy",
        ("2", "38", "48"),
        r"$L = -\sum_i y_i \log p_i$, $p = \mathrm{softmax}(z)$, over class indices or probabilities, smoothed to "
        r"$(1 - \alpha) y + \alpha / V$, summed or averaged over the targets that are not ignored.",
        (
            "https://github.com/Lightning-Universe/lightning-bolts/issues/654",
            "https://github.com/NVIDIA/Megatron-LM/issues/7452",
        ),
    ),
    families.gradient(
        "cross_entropy",
        ("2", "48"),
        r"$\bar z = w (p \sum_i y_i - y)$ with $w$ the row's share of the cotangent.",
        ("https://github.com/linkedin/Liger-Kernel/pull/1298",),
    ),
)
