"""The arguments of the two norms."""

from torch import Tensor

from veriformer.impl import checks


def check_vectors(x: Tensor, eps: float, **parameters: Tensor | None) -> None:
    """Refuse empty vectors, a negative `eps`, and parameters that are not `[d]` of the dtype of `x`."""
    if checks.tensor("x", x).ndim == 0 or x.shape[-1] == 0:
        got = f"shape {tuple(x.shape)}"
        checks.raise_for("x", "shape [..., d] with d of 1 or more", got, "a norm of nothing has no value")
    checks.nonnegative("eps", eps)
    for name, p in parameters.items():
        if p is not None and checks.tensor(name, p).shape != x.shape[-1:]:
            expected = f"shape {tuple(x.shape[-1:])}, the last axis of x"
            checks.raise_for(name, expected, f"shape {tuple(p.shape)}", "a norm has one parameter per coordinate")
    checks.same_dtype_and_device({"x": x, **parameters})
