"""FlashAttention as a differentiable function, whose passes are operators to a compiler: it need not look inside."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from veriformer.impl import checks
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.flash.function import INTERPRETED, Kernels, Plan
from veriformer.impl.attention_backends.flash.launch import Launch, launch, shared_memory
from veriformer.impl.derivatives import apply_autograd_function


def flash(call: Call, side: int | None = None) -> Tensor:
    """Run the kernels on a call that they can express, in tiles of `side × side` or of a size that fits."""
    seed = _seed(call) if call.dropout_p > 0 else None
    mask = None if call.mask is None else call.mask.view(torch.uint8)
    q, k, v = (_within_reach(x) for x in (call.q, call.k, call.v))
    settings = (call.is_causal, call.window, call.scale, call.softcap, call.dropout_p, side)
    return apply_autograd_function(_Flash, q, k, v, call.bias, mask, seed, *settings)


def _within_reach(x: Tensor) -> Tensor:
    """Return `x`, copied if its strides are so large that offsets within a tile of 256 × 256 would leave 32 bits."""
    return x if sum(x.stride()[2:]) * 256 < 2**31 else x.contiguous()


def _seed(call: Call) -> Tensor:
    """Draw the seed of the masks where the tensors are, so that nothing waits for it."""
    bounds = torch.iinfo(torch.int64)
    return torch.randint(bounds.min, bounds.max, (1,), generator=call.generator, device=call.q.device)


class _Flash(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, seed: Tensor | None,
        *settings: Any,
    ) -> Tensor:  # fmt: skip
        inputs = (q, k, v, bias, mask, seed)
        o, lse = _of(q, _forward, _closed_forward)(*inputs, *settings)
        ctx.settings = settings
        ctx.save_for_backward(*inputs, o, lse)
        return o.to(q.dtype)  # type: ignore[no-any-return]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        saved, wanted = ctx.saved_tensors, ctx.needs_input_grad[:4]
        flags = (wanted[0], wanted[1] or wanted[2], wanted[3])
        found = _of(g, _backward, _closed_backward)(*saved, g, *flags, *ctx.settings)
        gradients = (x if want else None for x, want in zip(found, wanted, strict=True))
        return (*gradients, *[None] * 8)


def _of(x: Tensor, plain: Any, closed: Any) -> Any:
    return plain if checks.can_read_values(x) else closed


def _forward(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, seed: Tensor | None,
    is_causal: bool, window: int | None, scale: float, softcap: float | None, dropout_p: float, side: int | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the output, not yet in the dtype of the call, and each row's log-sum-exp."""
    plan = Plan(is_causal, window, scale, softcap, dropout_p, _launch(q, v, side))
    return Kernels(plan, q, k, v, bias, mask, seed).forward()


def _backward(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, seed: Tensor | None,
    o: Tensor, lse: Tensor, g: Tensor, to_queries: bool, to_keys: bool, to_bias: bool,
    is_causal: bool, window: int | None, scale: float, softcap: float | None, dropout_p: float, side: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the gradients of q, k, v and bias, without entries where nobody wants them."""
    plan = Plan(is_causal, window, scale, softcap, dropout_p, _launch(q, v, side))
    kernels, g = Kernels(plan, q, k, v, bias, mask, seed), _within_reach(g)
    D = kernels.row_products(o, g)
    dq = kernels.query_gradients(g, lse, D) if to_queries else q.new_empty(0)
    dk, dv = kernels.key_gradients(g, lse, D) if to_keys else (q.new_empty(0), q.new_empty(0))
    return dq, dk, dv, kernels.bias_gradients(g, lse, D) if to_bias else q.new_empty(0)


def _launch(q: Tensor, v: Tensor, side: int | None) -> Launch:
    if side:
        return Launch.square(side)
    return launch(max(q.shape[3], v.shape[3]), q.dtype, INTERPRETED, shared_memory(q.device))


_closed_forward = torch.library.custom_op("veriformer::flash_forward", _forward, mutates_args=())
_closed_backward = torch.library.custom_op("veriformer::flash_backward", _backward, mutates_args=())


@_closed_forward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    rows, dtype = q.shape[:3], torch.float32 if INTERPRETED else q.dtype
    return q.new_empty(*rows, v.shape[3], dtype=dtype), q.new_empty(*rows, dtype=torch.float32)


@_closed_backward.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None, seed: Tensor | None,
    o: Tensor, lse: Tensor, g: Tensor, to_queries: bool, to_keys: bool, to_bias: bool, *_: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    wanted = zip((q, k, v, bias), (to_queries, to_keys, to_keys, to_bias), strict=True)
    return tuple(x.new_empty(x.shape) if want and x is not None else q.new_empty(0) for x, want in wanted)
