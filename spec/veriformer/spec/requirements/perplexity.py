"""Requirements of perplexity (equation 41)."""

from veriformer.spec.requirements import families

PERPLEXITY = (
    families.contract("perplexity", ("41",)),
    families.equation(
        "perplexity",
        ("41",),
        r"$\exp(-\frac{1}{T} \sum_t \log p_{t, x_t})$ over the $T$ targets that are not ignored, of all axes together.",
    ),
    families.gradient("perplexity", ("41",), r"$\bar z_t = \bar L \cdot \mathrm{PPL} \cdot (p_t - y_t) / T$."),
)
