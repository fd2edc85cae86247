"""Gradient accumulation: the gradient of one large batch, from parts of any size."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.precision import upcast

LossFn = Callable[[Any], tuple[Tensor, int | Tensor]]


def accumulate_gradients(loss_fn: LossFn, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> list[Tensor]:
    r"""Return the gradient of the mean loss over all tokens of all micro-batches.

    $$\nabla \mathcal{L} = \frac{\sum_k \nabla S_k}{\sum_k n_k}, \quad (S_k, n_k) = \mathtt{loss\_fn}(b_k)$$

    with the *sum* $S_k$ of the losses of a micro-batch and the count $n_k$ of its tokens, an int or a tensor, which may
    be 0. Micro-batches are taken one at a time, so they may come from a generator, and each one's graph is freed before
    the next. The gradients have the dtypes of `params`; those of halves are summed in float32. Unused parameters, and
    all of them where there is no token, get zeros. `p.grad` is neither read nor written. Raises `TypeError` for what is
    no function, no tensor or no iterable, `ValueError` for parameters without gradient, a loss that is not 0-d and
    negative counts. Documents 000 and 001, section 9.2.
    """
    _check(loss_fn, params, micro_batches)
    sums = [torch.zeros_like(upcast(p.detach())) for p in params]
    tokens: Any = 0
    for batch in micro_batches:
        with torch.enable_grad():
            loss, count = _checked(loss_fn(batch))
        tokens = tokens + count
        if loss.requires_grad:
            grads = torch.autograd.grad(loss, params, allow_unused=True)
            for total, g in zip(sums, grads, strict=True):
                if g is not None:
                    total += g
    tokens = float(tokens) or 1.0
    return [(total / tokens).to(p.dtype) for total, p in zip(sums, params, strict=True)]


def _check(loss_fn: object, params: object, micro_batches: object) -> None:
    if not callable(loss_fn):
        checks.raise_for("loss_fn", "a function of a micro-batch", type(loss_fn).__name__, "pass one", TypeError)
    if not isinstance(params, Sequence):
        checks.raise_for("params", "a list of tensors", type(params).__name__, "put the tensors into a list", TypeError)
    for index, p in enumerate(params):
        if not checks.tensor(f"params[{index}]", p).requires_grad:
            checks.raise_for(f"params[{index}]", "a tensor that requires grad", "one that does not", "leave it out")
    if isinstance(micro_batches, Tensor) or not isinstance(micro_batches, Iterable):
        got = type(micro_batches).__name__
        checks.raise_for("micro_batches", "micro-batches to iterate over", got, "pass a list or a generator", TypeError)


def _checked(returned: object) -> tuple[Tensor, Any]:
    """Return the sum of the losses, and the count as an integer or in a dtype that holds it."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        checks.raise_for("loss_fn", "(sum_of_losses, count) from it", type(returned).__name__, "return both", TypeError)
    loss, count = returned
    if checks.tensor("loss_fn: sum_of_losses", loss).ndim != 0:
        checks.raise_for("loss_fn: sum_of_losses", "a 0-d tensor", f"shape {tuple(loss.shape)}", "sum the losses")
    if isinstance(count, Tensor):
        return loss, count.detach().to(torch.float64 if count.is_floating_point() else torch.int64).sum()
    return loss, checks.nonnegative("loss_fn: count", count)
