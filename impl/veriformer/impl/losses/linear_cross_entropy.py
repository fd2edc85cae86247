"""The loss of a model's last product without the logits of all tokens at once."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl import checks
from veriformer.impl.derivatives import apply_autograd_function
from veriformer.impl.linear import linear
from veriformer.impl.losses.targets import check_classes
from veriformer.impl.precision import upcast, uses_autocast
from veriformer.impl.shapes import match_shapes

CHUNK = 2**22
"""Logits at a time on a processor: 16 MiB in float32, about what its last cache holds."""

TOKENS_PER_FEATURE = 4
"""Tokens of a chunk on other devices, divided by d: every chunk reads and writes the gradient of the weights, which is
then a small part of the memory traffic, while the logits of 3 072 tokens, beside 16 384 in a step of GPT-2, are a small
part of its memory."""


def linear_cross_entropy(
    h: Tensor,
    weight: Tensor,
    target: Tensor,
    *,
    bias: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    chunk: int | None = None,
) -> Tensor:
    r"""Return the cross-entropy of the logits $z = h W^\top + b$, some tokens at a time.

    $$\ell_t = \log \sum_j e^{z_{tj}} - (1 - \alpha)\, z_{t y_t} - \frac{\alpha}{V} \sum_j z_{tj}, \quad
      \partial z_t = p_t - (1 - \alpha)\, e_{y_t} - \frac{\alpha}{V} \mathbf 1$$

    The gradient of a token's logits is known as soon as they are, so forward multiplies it on at once and forgets it:
    three products as ever, and memory for `chunk` tokens instead of all. What is subtracted from $p_t$ is one entry and
    a constant, so it never meets a `[tokens, V]` matrix: its products are rows and sums of `weight` and of `h`.

    Shapes: `h [..., d]`, `weight [V, d]`, `bias [V]`, `target [...]` int64 → 0-d. `reduction` is `"mean"` over the
    targets that are not ignored (0 when there are none), or `"sum"`. Dtypes: float64, float32, bfloat16, float16, all
    the same but under autocast, where the loss is float32; the products of halves are rounded as a head would round
    them, all else is float32.
    Second derivatives are refused. Raises as `cross_entropy` does. Equations 2, 38, 40, 48.
    """
    (h, weight, bias), dtype = _one_dtype(h, weight, bias)
    counted = _check(h, weight, bias, target, checks.integer("ignore_index", ignore_index)).reshape(-1)
    alpha = checks.probability("label_smoothing", label_smoothing)
    checks.choice("reduction", reduction, ("mean", "sum"))
    size = _chunk(weight) if chunk is None else checks.integer("chunk", chunk, minimum=1)
    rows = h.reshape(-1, h.shape[-1]).masked_fill(~counted[:, None], 0)  # what is ignored reaches no gradient
    y = target.reshape(-1).masked_fill(~counted, 0)
    loss = apply_autograd_function(_LinearCrossEntropy, rows, weight, bias, y, counted, alpha, size)
    if reduction == "mean":
        loss = loss / counted.sum().clamp(min=1)
    return loss.to(dtype)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, W: Tensor, b: Tensor | None, y: Tensor, counted: Tensor, alpha: float, size: int
    ) -> Tensor:
        wide, (N, V) = upcast(h[:0]).dtype, (len(h), len(W))
        dh, dW = (torch.zeros(x.shape, dtype=wide, device=h.device) for x in (h, W))
        db = None if b is None else dW.new_zeros(V)
        buffer = dW.new_empty(min(size, N), V)  # allocated once for all chunks
        (largest, chosen), (peak, mean) = h.new_empty(2, N), dW.new_empty(2, N)
        for start in range(0, N, size):
            c = slice(start, min(start + size, N))
            z = linear(h[c], W.mT, b)  # [c, V]
            p = torch.softmax(z, -1, dtype=wide, out=buffer[: len(z)])
            torch.amax(z, -1, out=largest[c])
            torch.gather(z, -1, y[c, None], out=chosen[c, None])
            torch.amax(p, -1, out=peak[c])
            if alpha:
                mean[c] = z.mean(-1, dtype=wide)
            if any(ctx.needs_input_grad):
                _add_products(p, h[c], W, counted[c], dh[c], dW, db)
        loss = upcast(largest) - peak.log() - (1 - alpha) * upcast(chosen)  # the largest p is 1 / Σ exp(z − max)
        loss = loss - alpha * mean if alpha else loss
        if any(ctx.needs_input_grad):
            _subtract_target(h, W, y, counted, alpha, dh, dW, db)
            ctx.save_for_backward(dh.to(h.dtype), dW.to(W.dtype), None if b is None or db is None else db.to(b.dtype))
        total: Tensor = loss.masked_fill(~counted, 0).sum()
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if x is None else x * g.to(x.dtype) for x in ctx.saved_tensors), None, None, None, None


def _add_products(p: Tensor, h: Tensor, W: Tensor, counted: Tensor, dh: Tensor, dW: Tensor, db: Tensor | None) -> None:
    """Write the part of the probabilities `p [c, V]` into the gradient of h, and add it to those of W and b."""
    if db is not None:
        db += counted.to(p.dtype) @ p
    p = p.to(h.dtype)
    if dW.dtype == h.dtype:
        torch.mm(p, W, out=dh)
        dW.addmm_(p.mT, h)
    else:
        dh.copy_(linear(p, W))
        dW += p.mT @ h


def _subtract_target(
    h: Tensor, W: Tensor, y: Tensor, counted: Tensor, alpha: float, dh: Tensor, dW: Tensor, db: Tensor | None
) -> None:
    """Subtract the part of the target from the gradients: one entry for each token, and a constant."""
    h = upcast(h)
    dh -= (1 - alpha) * upcast(W[y])
    dW.index_add_(0, y, h, alpha=alpha - 1)
    if alpha:
        dh -= alpha / len(W) * W.sum(0, dtype=dh.dtype)
        dW -= alpha / len(W) * h.sum(0)
    if db is not None:
        weights = counted.to(db.dtype)
        db.index_add_(0, y, weights, alpha=alpha - 1)
        db -= alpha / len(W) * weights.sum()


def _chunk(weight: Tensor) -> int:
    """Return how many tokens have their logits at a time."""
    V, d = weight.shape
    return max(1, CHUNK // V) if weight.is_cpu else max(1, CHUNK // V, TOKENS_PER_FEATURE * d)


def _one_dtype(*tensors: Tensor | None) -> tuple[tuple[Any, ...], torch.dtype]:
    """Convert as autocast would, which does not look into functions of one's own; return also the dtype of the loss."""
    first = checks.tensor("h", tensors[0])
    kind = first.device.type
    if not uses_autocast(kind):
        return tensors, first.dtype
    return tuple(None if x is None else x.to(torch.get_autocast_dtype(kind)) for x in tensors), torch.float32


def _check(h: Tensor, weight: Tensor, bias: Tensor | None, target: object, ignore_index: int) -> Tensor:
    """Return which targets count."""
    shapes = {"h": "... d", "weight": "V d"} | ({} if bias is None else {"bias": "V"})
    V = match_shapes(shapes, h=h, weight=weight, bias=bias)["V"]
    if V == 0:
        checks.raise_for("weight", "at least one class", f"shape {tuple(weight.shape)}", "no class means no loss")
    scores = h.new_empty(()).expand(*h.shape[:-1], V)  # no memory: only the shape is looked at
    return check_classes("target", target, scores, ignore_index, of="the logits")
