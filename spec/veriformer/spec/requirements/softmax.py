"""Requirements of softmax (equations 1, 21, 25)."""

from veriformer.spec.requirements import templates

softmax = templates.of("softmax", "1")

_UNSHIFTED = "https://github.com/tenstorrent/tt-metal/pull/10001"


REQUIREMENTS = (
    softmax.contract(),
    softmax.equation(
        r"$p_i = e^{z_i} / \sum_j e^{z_j}$ along any axis; an entry of $-\infty$ has probability 0.",
        equations=("1", "21"),
    ),
    softmax.gradient(r"$\bar z_i = p_i (\bar p_i - \sum_j p_j \bar p_j)$.", equations=("25",)),
    *softmax.standard(
        "purity layout refusals batch sensitivity numpy_numbers long",
        refusals="No tensor, an axis that does not exist and an empty axis are refused.",
        batch="Slices along the other axes are independent: each can be computed alone.",
    ),
    softmax.wrong(
        "simplex",
        r"$p_i > 0$ and $\sum_i p_i = 1$.",
        r"$\hat p_i \ge 0$, since small ones underflow, and $|\sum_i \hat p_i - 1|$ is at most the sum of the bounds "
        r"on the $\hat p_i$.",
        "not a distribution",
    ),
    softmax.wrong(
        "shift",
        r"$\mathrm{softmax}(z + c) = \mathrm{softmax}(z)$ for any number $c$.",
        "The same for $z$ and $z + c$ that the dtype holds exactly, within the sum of both bounds.",
        "not invariant to shifts",
        equations=("1", "12"),
    ),
    softmax.wrong(
        "jacobian",
        r"The Jacobian $\mathrm{diag}(p) - p p^\top$ annihilates constants: $\sum_i \bar z_i = 0$.",
        r"$|\sum_i \hat{\bar z}_i|$ is at most the sum of the bounds on the entries.",
        "gradient that does not conserve",
        equations=("25",),
    ),
    softmax.wrong(
        "permutation",
        r"$\mathrm{softmax}(\Pi z) = \Pi\, \mathrm{softmax}(z)$ for any permutation $\Pi$.",
        "The same within the sum of both bounds.",
        "dependence on position",
    ),
    softmax.numerics(
        "range",
        "The formula has a value for scores of any size.",
        r"Scores up to a quarter of the largest number of the dtype, of both signs and $-\infty$, give finite "
        "probabilities and gradients within their bounds.",
        "overflow",
        _UNSHIFTED,
        "https://github.com/PaddlePaddle/PaddleFleet/pull/1439",
        equations=("1", "12"),
    ),
    softmax.accuracy(),
)
