"""Requirements of the mean squared error (document 002, section 2.1.1)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("mse_loss"),
    templates.result_dtype("mse_loss"),
    templates.equation(
        "mse_loss",
        (),
        r"$L = \frac{1}{N} \sum_i \|\hat y_i - y_i\|^2$ over the $N$ vectors of the last axis, whose squares are "
        "summed and not averaged; one vector alone is one sample.",
    ),
    templates.gradient("mse_loss", (), r"$\bar{\hat y} = \frac{2}{N} \bar L (\hat y - y)$."),
    templates.purity("mse_loss"),
    templates.layout("mse_loss"),
    *templates.refusals("mse_loss", "No tensor, shapes or dtypes that differ, and empty arguments are refused."),
    templates.sensitivity("mse_loss"),
    templates.accuracy("mse_loss"),
    templates.long("mse_loss"),
    templates.law(
        "mse_loss",
        "partition",
        "The loss of all samples is the mean of the losses of any ragged parts, weighted by their numbers of samples.",
        "The same within the sum of all bounds, so weighted.",
        "mean of means",
        precedents=("https://github.com/pytorch/torchtitan/pull/2206",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "mse_loss",
        "distance",
        r"$L(a, b) = L(b, a) = L(a + c, b + c) = L(s a, s b) / s^2$.",
        "The same for shifts that the dtype holds exactly and powers of two, within the sum of both bounds.",
        "not a squared distance",
        weight=Weight.WRONG,
    ),
    templates.law(
        "mse_loss",
        "range",
        "The loss and its gradient are finite where the formula's are: no sum overflows on the way in half precision.",
        "The same, in fp16, and within the bound of the formula.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        weight=Weight.FRAGILE,
    ),
)
