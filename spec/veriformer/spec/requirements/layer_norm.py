"""Requirements of layer normalisation (equation 19)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("layer_norm", ("19",)),
    templates.equation(
        "layer_norm",
        ("19",),
        r"$y = \gamma \odot (x - \mu) / \sqrt{\sigma^2 + \varepsilon} + \beta$ with the biased variance of the last "
        r"axis; $\gamma$ and $\beta$ may each be left out.",
    ),
    templates.gradient(
        "layer_norm",
        ("19",),
        r"$\bar x = (h - \overline{h} - \hat x\, \overline{h \odot \hat x}) / \sqrt{\sigma^2 + \varepsilon}$ with "
        r"$h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$; $\bar\beta = \sum \bar y$.",
    ),
    templates.purity("layer_norm"),
    templates.layout("layer_norm"),
    *templates.refusals(
        "layer_norm",
        r"No tensor, an empty axis, a negative $\varepsilon$, and parameters that are not $[d]$ in the dtype of $x$ "
        r"are "
        "refused.",
    ),
    templates.batch("layer_norm", "Rows are independent: each can be computed alone."),
    templates.sensitivity("layer_norm"),
    templates.numpy_numbers("layer_norm"),
    templates.long("layer_norm"),
    templates.law(
        "layer_norm",
        "moments",
        r"Without parameters a row has mean 0 and variance $\sigma^2 / (\sigma^2 + \varepsilon)$.",
        "The same within what the bounds on the entries leave to their sum and to their mean square.",
        "wrong moments",
        equations=("19",),
        precedents=(
            "https://github.com/harvardnlp/annotated-transformer/pull/119",
            "https://github.com/131250208/TPlinker-joint-extraction/issues/37",
        ),
        weight=Weight.WRONG,
    ),
    templates.law(
        "layer_norm",
        "shift",
        "Adding a number to all entries of a row changes nothing.",
        "The same for shifts that the dtype holds exactly, within the sum of both bounds.",
        "not invariant to shifts",
        equations=("19",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "layer_norm",
        "scale",
        r"Scaling a row by $s > 0$ and $\varepsilon$ by $s^2$ changes nothing.",
        "The same for powers of two, within the sum of both bounds.",
        "epsilon in the wrong place",
        equations=("19",),
        precedents=("https://github.com/hkproj/pytorch-transformer/pull/31",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "layer_norm",
        "odd",
        r"Without parameters $y(-x) = -y(x)$.",
        "The same within the sum of both bounds.",
        "lost sign",
        equations=("19",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "layer_norm",
        "affine",
        r"With parameters the result is $\gamma \odot y + \beta$ of the result without; each may come alone.",
        "The same within the sum of the bounds.",
        "misplaced parameter",
        equations=("19",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "layer_norm",
        "near_eps",
        r"The formula holds where the variance is as small as $\varepsilon$, which stands inside the root.",
        "Result and gradients of rows with a spread around $\\sqrt{\\varepsilon}$ lie within their bounds.",
        "epsilon in the wrong place",
        kind=Kind.EQUATION,
        equations=("19",),
        precedents=("https://github.com/hkproj/pytorch-transformer/pull/31",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "layer_norm",
        "constant_rows",
        r"A constant row gives $\beta$, and its gradient is finite.",
        "The same within the bounds, which grow with the size of the constant.",
        "division by zero",
        kind=Kind.EQUATION,
        equations=("19",),
        precedents=("https://github.com/hkproj/pytorch-transformer/pull/31",),
        weight=Weight.FRAGILE,
    ),
    templates.law(
        "layer_norm",
        "range",
        "The formula has a value for rows of any size.",
        "Rows whose squares leave fp16, though not fp32, give finite results and gradients within their bounds.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=("19",),
        weight=Weight.FRAGILE,
    ),
    Requirement(
        slug="layer_norm.conditioning",
        operation="layer_norm",
        statement="The variance of a row does not depend on its mean.",
        floating_point_statement=(
            "With a mean of half the digits of the dtype, result and gradient lie within the bounds of the variance "
            "in two "
            "passes. Where one pass is claimed, its bounds hold, and that is a deviation."
        ),
        kind=Kind.CONVENTION,
        weight=Weight.FRAGILE,
        equations=("19",),
        prerequisites=("layer_norm.contract",),
        bug_class="cancellation",
        precedents=(
            "https://github.com/pytorch/pytorch/issues/51102",
            "https://github.com/camlab-ethz/poseidon/issues/6",
        ),
    ),
    templates.accuracy("layer_norm"),
)
