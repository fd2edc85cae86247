"""Requirements of root-mean-square normalisation (document 002, section 3.4)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("rms_norm"),
    templates.equation(
        "rms_norm",
        (),
        r"$y = \gamma \odot x / \sqrt{\overline{x^2} + \varepsilon}$ over the last axis; $\gamma$ may be left out.",
    ),
    templates.gradient(
        "rms_norm",
        (),
        r"$\bar x = (h - \hat x\, \overline{h \odot \hat x}) / \sqrt{\overline{x^2} + \varepsilon}$ with "
        r"$h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$.",
    ),
    templates.purity("rms_norm"),
    templates.layout("rms_norm"),
    *templates.refusals(
        "rms_norm",
        r"No tensor, an empty axis, a negative $\varepsilon$, and a weight that is not $[d]$ in the dtype of $x$ are "
        r"refused.",
    ),
    templates.batch("rms_norm", "Rows are independent: each can be computed alone."),
    templates.sensitivity("rms_norm"),
    templates.numpy_numbers("rms_norm"),
    templates.long("rms_norm"),
    templates.law(
        "rms_norm",
        "unit",
        r"Without a weight a row has mean square $\overline{x^2} / (\overline{x^2} + \varepsilon)$.",
        "The same within what the bounds on the entries leave to their mean square.",
        "wrong moments",
        precedents=("https://github.com/ml-explore/mlx-lm/pull/1624",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "rms_norm",
        "scale",
        r"Scaling a row by $s > 0$ and $\varepsilon$ by $s^2$ changes nothing.",
        "The same for powers of two, within the sum of both bounds.",
        "epsilon in the wrong place",
        precedents=("https://github.com/ml-explore/mlx-lm/pull/1624",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "rms_norm",
        "odd",
        r"$y(-x) = -y(x)$.",
        "The same within the sum of both bounds.",
        "lost sign",
        weight=Weight.WRONG,
    ),
    templates.law(
        "rms_norm",
        "affine",
        r"With a weight the result is $\gamma \odot y$ of the result without.",
        "The same within the sum of the bounds.",
        "misplaced parameter",
        precedents=("https://github.com/vllm-project/vllm/pull/29810",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "rms_norm",
        "near_eps",
        r"The formula holds where the mean square is as small as $\varepsilon$, which is added to the mean, inside "
        r"the root.",
        "Result and gradients of rows of a size around $\\sqrt{\\varepsilon}$ lie within their bounds.",
        "epsilon in the wrong place",
        kind=Kind.EQUATION,
        precedents=("https://github.com/ml-explore/mlx-lm/pull/1624",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "rms_norm",
        "range",
        "The formula has a value for rows of any size.",
        "Rows whose squares leave fp16, though not fp32, give finite results and gradients within their bounds.",
        "overflow",
        kind=Kind.NUMERICS,
        precedents=("https://github.com/jingyaogong/minimind/issues/301",),
        weight=Weight.FRAGILE,
    ),
    templates.accuracy("rms_norm", ("https://github.com/linkedin/Liger-Kernel/pull/950",)),
)
