"""Attention by PyTorch's FlexAttention: one function says what becomes of a score, another which of them are seen."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from veriformer.impl.attention_backends.arguments import backend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.flash.availability import launchable
from veriformer.impl.attention_backends.reference import dense
from veriformer.impl.precision import accumulation_dtype, upcast

_COMPILES_ON_CPU = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def fused(call: Call) -> Tensor:
    """`flex`: `torch.nn.attention.flex_attention`.

    Soft-cap and bias become its `score_mod`, causality, window and mask its `mask_mod`. It serves where `torch.compile`
    sees the call: there PyTorch writes one kernel for it, which leaves out the blocks that hold nothing visible, with
    gradients on a GPU, and without on a CPU. Called eagerly, PyTorch computes every score, as `reference` does, and
    warns of that once.

    The formula of `reference` computes what it cannot express: gradients on a CPU, dropout, tensors without entries or
    without memory, and keys or values that hold NaN or ∞ where something is hidden; compiled, also float64, heads
    narrower than 16 on a GPU, and a bias on a CPU, where the kernel may not read what the same graph computes.
    """
    if not _expressible(call):
        return dense(call)
    c = _on_cpu_without_graph(call)
    with _untraced(c.q):
        o = flex_attention(c.q, c.k, c.v, _score_mod(c), _block_mask(c), c.scale, enable_gqa=c.group > 1)
    return o.to(call.q.dtype)


attention = backend(fused)


def _expressible(call: Call) -> bool:
    filled = all(x.numel() > 0 and launchable(x) for x in (call.q, call.k, call.v))
    return filled and call.dropout_p == 0 and _supported(call) and not call.poisoned()


def _supported(call: Call) -> bool:
    compiled = torch.compiler.is_compiling()
    if compiled and call.q.dtype == torch.float64:
        return False
    if call.q.is_cuda:
        return not compiled or min(call.q.shape[3], call.v.shape[3]) >= 16
    if call.q.is_cpu:
        return not _differentiated(call) and (not compiled or (_COMPILES_ON_CPU and call.bias is None))
    return False


def _differentiated(call: Call) -> bool:
    given = (call.q, call.k, call.v, call.bias)
    return torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in given)


def _on_cpu_without_graph(call: Call) -> Call:
    """Widen halves on a CPU as `sdpa` does, and detach: there the operator refuses tensors that require gradients."""
    if not call.q.is_cpu:
        return call
    q, k, v = (upcast(x).detach() for x in (call.q, call.k, call.v))
    return replace(call, q=q, k=k, v=v, bias=None if call.bias is None else call.bias.detach())


def _untraced(q: Tensor) -> AbstractContextManager[object]:
    """Force eager mode on a CPU, where tracing takes longer than the call; only gradients need the trace."""
    eager = q.is_cpu and not torch.compiler.is_compiling()
    return torch.compiler.set_stance("force_eager") if eager else nullcontext()


def _score_mod(call: Call) -> Callable[..., Tensor] | None:
    if call.softcap is None and call.bias is None:
        return None
    cap = None if call.softcap is None else _constant(call.softcap, call.q)
    bias = None if call.bias is None else _spread(call.bias, call)

    def change(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        s = s if cap is None else cap * torch.tanh(s / cap)
        return s if bias is None else s + bias[b, h, i, j]

    return change


def _constant(c: float, q: Tensor) -> float | Tensor:
    """Return a number for `score_mod`: a tensor where PyTorch traces each call, and fails if a number has changed."""
    compiled = torch.compiler.is_compiling()
    return c if compiled else torch.tensor(c, dtype=accumulation_dtype(q.dtype), device=q.device)


def _block_mask(call: Call) -> BlockMask | None:
    """Return who sees whom, in blocks, only once where it is the same for every batch element or head."""
    if call.mask is None and not call.is_causal:
        return None
    B, H = (1, 1) if call.mask is None else call.mask.shape[:2]
    mask = None if call.mask is None else _spread(call.mask, call)
    is_causal, shift, window = call.is_causal, call.shift, call.window

    def sees(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        seen = j >= 0 if mask is None else mask[b, h, i, j]
        if is_causal:
            seen = seen & (j <= i + shift)
        return seen if window is None else seen & (j > i + shift - window)

    return create_block_mask(sees, B, H, call.q.shape[2], call.k.shape[2], device=call.q.device)


def _spread(x: Tensor, call: Call) -> Tensor:
    """Return `x` with every axis full, but not copied, to be asked for any query and key."""
    return x.expand(*call.q.shape[:3], call.k.shape[2])
