"""Requirements of log-sum-exp (equation 12)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("logsumexp", ("12",)),
    templates.equation("logsumexp", ("12",), r"$\mathrm{lse}(z) = \log \sum_i e^{z_i}$ along any axis."),
    templates.gradient("logsumexp", ("12",), r"$\bar z_i = \bar l\, e^{z_i} / \sum_j e^{z_j}$."),
    templates.purity("logsumexp"),
    templates.layout("logsumexp"),
    *templates.refusals("logsumexp", "No tensor and an axis that does not exist are refused."),
    templates.batch("logsumexp", "Slices along the other axes are independent: each can be computed alone."),
    templates.sensitivity("logsumexp"),
    templates.numpy_numbers("logsumexp"),
    templates.long("logsumexp"),
    templates.law(
        "logsumexp",
        "shift",
        r"$\mathrm{lse}(z + c) = \mathrm{lse}(z) + c$ for any number $c$.",
        "The same for $z$ and $z + c$ that the dtype holds exactly, within the sum of both bounds.",
        "not equivariant to shifts",
        equations=("12",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "logsumexp",
        "between",
        r"$\max z \le \mathrm{lse}(z) \le \max z + \log n$.",
        "The same, widened by the bound on the result.",
        "out of bounds",
        equations=("12",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "logsumexp",
        "range",
        "The formula has a value for scores of any size.",
        "Scores up to a quarter of the largest number of the dtype, of both signs and $-\\infty$, give finite values "
        "and "
        "gradients within their bounds.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=("12",),
        precedents=("https://github.com/tenstorrent/tt-metal/pull/10001",),
        weight=Weight.FRAGILE,
    ),
    templates.accuracy("logsumexp"),
)
