"""Requirements of Xavier initialisation (equation 49)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

_RATE = "for one run in 1e9"

REQUIREMENTS = (
    templates.contract("xavier_normal", ("49",)),
    *templates.refusals("xavier_normal", "Negative sizes, and what is no integer, are refused."),
    templates.numpy_numbers("xavier_normal"),
    templates.law(
        "xavier_normal",
        "variance",
        r"Weights have mean 0 and variance $\frac{2}{n_{in} + n_{out}}$.",
        "The sum of squares, and the sum, of many weights lie where those of normal variables do, by Chernoff's bound, "
        f"but {_RATE}.",
        "wrong scale of first weights",
        equations=("49",),
        precedents=(
            "https://github.com/pytorch/pytorch/issues/166378",
            "https://github.com/clankur/einygpt/pull/3",
        ),
        weight=Weight.WRONG,
    ),
    templates.law(
        "xavier_normal",
        "normality",
        "Weights are normally distributed.",
        "The shares of weights within a half, one, two and three deviations, and of positive ones, lie where chance "
        f"has them, but {_RATE}.",
        "wrong distribution of first weights",
        equations=("49",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "xavier_normal",
        "independence",
        "Weights are independent of one another.",
        f"Pairs at several distances along both axes agree in sign as often as chance has it, but {_RATE}.",
        "dependent first weights",
        equations=("49",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "xavier_normal",
        "generator",
        "Equal states of the generator, or of PyTorch's global one, give equal weights; a later one gives others.",
        "The same exactly.",
        "weights not reproducible",
        equations=("49",),
        weight=Weight.WRONG,
    ),
)
