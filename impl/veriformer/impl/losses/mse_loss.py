"""The mean squared error."""

from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.precision import upcast
from veriformer.impl.shapes import match_shapes


def mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    r"""Average the squared distance between predictions and targets over all samples.

    $$L = \frac1N \sum_{i=1}^N \lVert \hat y_i - y_i \rVert^2, \quad \partial \hat y = \tfrac2N (\hat y - y)$$

    The last axis is the vector, and all axes before it count the $N$ samples; `[d]` is one sample. The sum over the
    vector is not divided by its length. Targets have no gradient.

    Shapes: `prediction [..., d]`, `target [..., d]` → a 0-d tensor. Dtypes: float64, float32, bfloat16, float16, both
    the same; halves are computed in float32. Raises `ValueError` for shapes that differ or hold no entry, `TypeError`
    for wrong or mixed dtypes. Document 002, section 2.1.1.
    """
    match_shapes({"prediction": "... d", "target": "... d"}, prediction=prediction, target=target)
    if target.shape != prediction.shape:
        expected = f"shape {tuple(prediction.shape)}, as prediction has"
        checks.raise_for(
            "target", expected, f"shape {tuple(target.shape)}", "nothing is broadcast, so expand it yourself"
        )
    if prediction.numel() == 0:
        got = f"shape {tuple(prediction.shape)}"
        checks.raise_for("prediction", "at least one entry", got, "the mean of nothing has no value")
    error = upcast(prediction) - target.detach()
    samples = error.numel() // error.shape[-1]
    # Divided before they are added: the sum may overflow where the mean does not.
    return (error.square().sum(-1) / samples).sum().to(prediction.dtype)
