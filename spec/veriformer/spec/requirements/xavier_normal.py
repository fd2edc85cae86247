"""Requirements of Xavier initialisation (equation 49)."""

from veriformer.spec.requirements import templates

xavier_normal = templates.of("xavier_normal", "49")

_RATE = "for one run in 1e9"

REQUIREMENTS = (
    *xavier_normal.standard(
        "contract refusals numpy_numbers", refusals="Negative sizes, and what is no integer, are refused."
    ),
    xavier_normal.wrong(
        "variance",
        r"Weights have mean 0 and variance $\frac{2}{n_{in} + n_{out}}$.",
        "The sum of squares, and the sum, of many weights lie where those of normal variables do, by Chernoff's bound, "
        f"but {_RATE}.",
        "wrong scale of first weights",
        "https://github.com/pytorch/pytorch/issues/166378",
        "https://github.com/clankur/einygpt/pull/3",
    ),
    xavier_normal.wrong(
        "normality",
        "Weights are normally distributed.",
        "The shares of weights within a half, one, two and three deviations, and of positive ones, lie where chance "
        f"has them, but {_RATE}.",
        "wrong distribution of first weights",
    ),
    xavier_normal.wrong(
        "independence",
        "Weights are independent of one another.",
        f"Pairs at several distances along both axes agree in sign as often as chance has it, but {_RATE}.",
        "dependent first weights",
    ),
    xavier_normal.wrong(
        "generator",
        "Equal states of the generator, or of PyTorch's global one, give equal weights; a later one gives others.",
        "The same exactly.",
        "weights not reproducible",
    ),
)
