"""Requirements of layer normalisation (equation 19)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements import templates

layer_norm = templates.of("layer_norm", "19")

REQUIREMENTS = (
    *layer_norm.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
        equation=r"$y = \gamma \odot (x - \mu) / \sqrt{\sigma^2 + \varepsilon} + \beta$ with the biased variance of "
        r"the last axis; $\gamma$ and $\beta$ may each be left out.",
        gradient=r"$\bar x = (h - \overline{h} - \hat x\, \overline{h \odot \hat x}) / \sqrt{\sigma^2 + \varepsilon}$ "
        r"with $h = \bar y \odot \gamma$; $\bar\gamma = \sum \bar y \odot \hat x$; $\bar\beta = \sum \bar y$.",
        refusals=r"No tensor, an empty axis, a negative $\varepsilon$, and parameters that are not $[d]$ in the dtype "
        "of $x$ are refused.",
        batch="Rows are independent: each can be computed alone.",
    ),
    layer_norm.wrong(
        "moments",
        r"Without parameters a row has mean 0 and variance $\sigma^2 / (\sigma^2 + \varepsilon)$.",
        "The same within what the bounds on the entries leave to their sum and to their mean square.",
        "wrong moments",
        "https://github.com/harvardnlp/annotated-transformer/pull/119",
        "https://github.com/131250208/TPlinker-joint-extraction/issues/37",
    ),
    layer_norm.wrong(
        "shift",
        "Adding a number to all entries of a row changes nothing.",
        "The same for shifts that the dtype holds exactly, within the sum of both bounds.",
        "not invariant to shifts",
    ),
    layer_norm.wrong(
        "scale",
        r"Scaling a row by $s > 0$ and $\varepsilon$ by $s^2$ changes nothing.",
        "The same for powers of two, within the sum of both bounds.",
        "epsilon in the wrong place",
        "https://github.com/hkproj/pytorch-transformer/pull/31",
    ),
    layer_norm.wrong(
        "odd", r"Without parameters $y(-x) = -y(x)$.", "The same within the sum of both bounds.", "lost sign"
    ),
    layer_norm.wrong(
        "affine",
        r"With parameters the result is $\gamma \odot y + \beta$ of the result without; each may come alone.",
        "The same within the sum of the bounds.",
        "misplaced parameter",
    ),
    layer_norm.wrong(
        "near_eps",
        r"The formula holds where the variance is as small as $\varepsilon$, which stands inside the root.",
        "Result and gradients of rows with a spread around $\\sqrt{\\varepsilon}$ lie within their bounds.",
        "epsilon in the wrong place",
        "https://github.com/hkproj/pytorch-transformer/pull/31",
        kind=Kind.EQUATION,
    ),
    layer_norm.fragile(
        "constant_rows",
        r"A constant row gives $\beta$, and its gradient is finite.",
        "The same within the bounds, which grow with the size of the constant.",
        "division by zero",
        "https://github.com/hkproj/pytorch-transformer/pull/31",
        kind=Kind.EQUATION,
    ),
    layer_norm.numerics(
        "range",
        "The formula has a value for rows of any size.",
        "Rows whose squares leave fp16, though not fp32, give finite results and gradients within their bounds.",
        "overflow",
    ),
    layer_norm.fragile(
        "conditioning",
        "The variance of a row does not depend on its mean.",
        "With a mean of half the digits of the dtype, result and gradient lie within the bounds of the variance in two "
        "passes. Where one pass is claimed, its bounds hold, and that is a deviation.",
        "cancellation",
        "https://github.com/pytorch/pytorch/issues/51102",
        "https://github.com/camlab-ethz/poseidon/issues/6",
        kind=Kind.CONVENTION,
    ),
    layer_norm.accuracy(),
)
