"""Requirements of log-sum-exp (equation 12)."""

from veriformer.spec.requirements import templates

logsumexp = templates.of("logsumexp", "12")

REQUIREMENTS = (
    *logsumexp.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
        equation=r"$\mathrm{lse}(z) = \log \sum_i e^{z_i}$ along any axis.",
        gradient=r"$\bar z_i = \bar l\, e^{z_i} / \sum_j e^{z_j}$.",
        refusals="No tensor and an axis that does not exist are refused.",
        batch="Slices along the other axes are independent: each can be computed alone.",
    ),
    logsumexp.wrong(
        "shift",
        r"$\mathrm{lse}(z + c) = \mathrm{lse}(z) + c$ for any number $c$.",
        "The same for $z$ and $z + c$ that the dtype holds exactly, within the sum of both bounds.",
        "not equivariant to shifts",
    ),
    logsumexp.wrong(
        "between",
        r"$\max z \le \mathrm{lse}(z) \le \max z + \log n$.",
        "The same, widened by the bound on the result.",
        "out of bounds",
    ),
    logsumexp.numerics(
        "range",
        "The formula has a value for scores of any size.",
        r"Scores up to a quarter of the largest number of the dtype, of both signs and $-\infty$, give finite values "
        "and gradients within their bounds.",
        "overflow",
        "https://github.com/tenstorrent/tt-metal/pull/10001",
    ),
    logsumexp.accuracy(),
)
