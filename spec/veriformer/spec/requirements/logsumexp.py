"""Requirements of log-sum-exp (equation 12)."""

from veriformer.spec.requirements import families

LOGSUMEXP = (
    families.contract("logsumexp", ("12",)),
    families.equation("logsumexp", ("12",), r"$\mathrm{lse}(z) = \log \sum_i e^{z_i}$ along any axis."),
    families.gradient("logsumexp", ("12",), r"$\bar z_i = \bar l\, e^{z_i} / \sum_j e^{z_j}$."),
)
