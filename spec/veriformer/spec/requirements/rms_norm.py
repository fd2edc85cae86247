"""Requirements of root-mean-square normalisation (document 002, section 3.4)."""

from veriformer.spec.requirements import families

RMS_NORM = (
    families.contract("rms_norm"),
    families.equation(
        "rms_norm",
        (),
        r"$y = \gamma \odot x / \sqrt{\overline{x^2} + \varepsilon}$ over the last axis; $\gamma$ may be left out.",
    ),
    families.gradient(
        "rms_norm",
        (),
        r"$\bar x = (h - \hat x\, \overline{h \odot \hat x}) / \sqrt{\overline{x^2} + \varepsilon}$ with "
        r"$h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$.",
    ),
)
