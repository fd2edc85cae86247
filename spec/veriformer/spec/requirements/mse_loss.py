"""Requirements of the mean squared error (document 002, section 2.1.1)."""

from veriformer.spec.requirements import templates

mse_loss = templates.of("mse_loss")

REQUIREMENTS = (
    *mse_loss.standard(
        "contract result_dtype equation gradient purity layout refusals sensitivity accuracy long",
        equation=r"$L = \frac{1}{N} \sum_i \|\hat y_i - y_i\|^2$ over the $N$ vectors of the last axis, whose squares "
        "are summed and not averaged; one vector alone is one sample.",
        gradient=r"$\bar{\hat y} = \frac{2}{N} \bar L (\hat y - y)$.",
        refusals="No tensor, shapes or dtypes that differ, and empty arguments are refused.",
    ),
    mse_loss.wrong(
        "partition",
        "The loss of all samples is the mean of the losses of any ragged parts, weighted by their numbers of samples.",
        "The same within the sum of all bounds, so weighted.",
        "mean of means",
        "https://github.com/pytorch/torchtitan/pull/2206",
    ),
    mse_loss.wrong(
        "distance",
        r"$L(a, b) = L(b, a) = L(a + c, b + c) = L(s a, s b) / s^2$.",
        "The same for shifts that the dtype holds exactly and powers of two, within the sum of both bounds.",
        "not a squared distance",
    ),
    mse_loss.numerics(
        "range",
        "The loss and its gradient are finite where the formula's are: no sum overflows on the way in half precision.",
        "The same, in fp16, and within the bound of the formula.",
        "overflow in half precision",
    ),
)
