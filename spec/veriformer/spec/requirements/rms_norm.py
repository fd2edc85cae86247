"""Requirements of root-mean-square normalisation (document 002, section 3.4)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements import templates

rms_norm = templates.of("rms_norm")

REQUIREMENTS = (
    *rms_norm.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
        equation=r"$y = \gamma \odot x / \sqrt{\overline{x^2} + \varepsilon}$ over the last axis; $\gamma$ may be left "
        "out.",
        gradient=r"$\bar x = (h - \hat x\, \overline{h \odot \hat x}) / \sqrt{\overline{x^2} + \varepsilon}$ with "
        r"$h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$.",
        refusals=r"No tensor, an empty axis, a negative $\varepsilon$, and a weight that is not $[d]$ in the dtype of "
        "$x$ are refused.",
        batch="Rows are independent: each can be computed alone.",
    ),
    rms_norm.wrong(
        "unit",
        r"Without a weight a row has mean square $\overline{x^2} / (\overline{x^2} + \varepsilon)$.",
        "The same within what the bounds on the entries leave to their mean square.",
        "wrong moments",
        "https://github.com/ml-explore/mlx-lm/pull/1624",
    ),
    rms_norm.wrong(
        "scale",
        r"Scaling a row by $s > 0$ and $\varepsilon$ by $s^2$ changes nothing.",
        "The same for powers of two, within the sum of both bounds.",
        "epsilon in the wrong place",
        "https://github.com/ml-explore/mlx-lm/pull/1624",
    ),
    rms_norm.wrong("odd", r"$y(-x) = -y(x)$.", "The same within the sum of both bounds.", "lost sign"),
    rms_norm.wrong(
        "affine",
        r"With a weight the result is $\gamma \odot y$ of the result without.",
        "The same within the sum of the bounds.",
        "misplaced parameter",
        "https://github.com/vllm-project/vllm/pull/29810",
    ),
    rms_norm.wrong(
        "near_eps",
        r"The formula holds where the mean square is as small as $\varepsilon$, which is added to the mean, inside the "
        "root.",
        "Result and gradients of rows of a size around $\\sqrt{\\varepsilon}$ lie within their bounds.",
        "epsilon in the wrong place",
        "https://github.com/ml-explore/mlx-lm/pull/1624",
        kind=Kind.EQUATION,
    ),
    rms_norm.numerics(
        "range",
        "The formula has a value for rows of any size.",
        "Rows whose squares leave fp16, though not fp32, give finite results and gradients within their bounds.",
        "overflow",
        "https://github.com/jingyaogong/minimind/issues/301",
    ),
    rms_norm.accuracy("https://github.com/linkedin/Liger-Kernel/pull/950"),
)
