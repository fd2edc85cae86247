"""Requirements of layer normalisation (equation 19)."""

from veriformer.spec.requirements import families

LAYER_NORM = (
    families.contract("layer_norm", ("19",)),
    families.equation(
        "layer_norm",
        ("19",),
        r"$y = \gamma \odot (x - \mu) / \sqrt{\sigma^2 + \varepsilon} + \beta$ with the biased variance of the last "
        r"axis; $\gamma$ and $\beta$ may each be left out.",
    ),
    families.gradient(
        "layer_norm",
        ("19",),
        r"$\bar x = (h - \overline{h} - \hat x\, \overline{h \odot \hat x}) / \sqrt{\sigma^2 + \varepsilon}$ with "
        r"$h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$; $\bar\beta = \sum \bar y$.",
    ),
)
