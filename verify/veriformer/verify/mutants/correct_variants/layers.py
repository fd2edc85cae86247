"""Other ways to the norms, clipping and the causal mask."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.mutants.records import Variant
from veriformer.verify.mutants.staged_reference.attention import causal
from veriformer.verify.mutants.staged_reference.layers import Clip, LayerNorm, Norm, RmsNorm, power_of_two
from veriformer.verify.mutants.staged_reference.scores import widen


def _rsqrt(moment: Tensor, eps: float, d: int) -> Tensor:
    return torch.rsqrt(moment + eps)


def _welford(x: Tensor, mean: Tensor) -> Tensor:
    """The sum of squares about a mean that is carried along, one feature at a time."""
    m, squares = torch.zeros_like(x[..., :1]), torch.zeros_like(x[..., :1])
    for count, feature in enumerate(torch.split(x, 1, -1), start=1):
        old = feature - m
        m = m + old / count
        squares = squares + old * (feature - m)
    return squares / x.shape[-1]


def _one_pass(x: Tensor, mean: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True) - mean.square()


def _widest_layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    gain, shift = (None if t is None else t.double() for t in (weight, bias))
    return LayerNorm()(x.double(), gain, shift, eps).to(x.dtype)


def _library_rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return F.rms_norm(widen(x), x.shape[-1:], None if weight is None else widen(weight), eps).to(x.dtype)


def _by_length(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """√d x / √(Σ x² + d ε)."""
    wide, d = widen(x), x.shape[-1]
    y = wide * math.sqrt(d) / (wide.square().sum(-1, keepdim=True) + d * eps).sqrt()
    return (y if weight is None else y * widen(weight)).to(x.dtype)


def _norm_of_norms(grads: list[Tensor]) -> Norm:
    """Each gradient's norm first, then the norm of those."""
    dtype = torch.float64 if any(g.dtype == torch.float64 for g in grads) else torch.float32
    wide = [g.to(dtype) for g in grads if g.numel()]
    if not wide:
        return torch.zeros((), dtype=dtype), 1.0
    s = power_of_two(max(float(g.abs().max()) for g in wide))
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm([g / s for g in wide]))), s


def _lower_triangle(n_q: int, n_k: int, window: int | None) -> Tensor:
    seen = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return seen if window is None else seen.triu(n_k - n_q - window + 1)


def _by_distance(n_q: int, n_k: int, window: int | None) -> Tensor:
    distance = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    return (distance >= 0) if window is None else (distance >= 0) & (distance < window)


VARIANTS: tuple[Variant, ...] = (
    Variant(
        identifier="layers-base",
        title="The bases of the mutants",
        kernels={"layer_norm": LayerNorm(), "rms_norm": RmsNorm(), "clip_grad_norm": Clip(), "causal_mask": causal},
    ),
    Variant(
        identifier="norms-rsqrt",
        title="Norms by the reciprocal square root",
        kernels={"layer_norm": LayerNorm(inverse=_rsqrt), "rms_norm": RmsNorm(inverse=_rsqrt)},
    ),
    Variant(
        identifier="layer-norm-welford",
        title="Layer norm with Welford's variance",
        kernels={"layer_norm": LayerNorm(variance=_welford)},
    ),
    Variant(
        identifier="layer-norm-fp64", title="Layer norm in fp64 throughout", kernels={"layer_norm": _widest_layer_norm}
    ),
    Variant(
        identifier="layer-norm-one-pass",
        title="The variance is E[x²] − E[x]², and the implementation says so",
        link="https://github.com/camlab-ethz/poseidon/issues/6",
        kernels={"layer_norm": LayerNorm(variance=_one_pass)},
        claims={"conventions": {"layer_norm.variance": "one-pass"}},
    ),
    Variant(identifier="rms-norm-library", title="PyTorch's RMS norm", kernels={"rms_norm": _library_rms_norm}),
    Variant(
        identifier="rms-norm-by-length", title="RMS norm through the Euclidean length", kernels={"rms_norm": _by_length}
    ),
    Variant(
        identifier="clip-norm-of-norms",
        title="The global norm as the norm of the gradients' norms",
        kernels={
            "clip_grad_norm": Clip(
                norms=lambda grads: [_norm_of_norms(grads)] * len(grads),
                total=_norm_of_norms,
            )
        },
    ),
    Variant(
        identifier="causal-mask-tril", title="The causal mask by triangles", kernels={"causal_mask": _lower_triangle}
    ),
    Variant(
        identifier="causal-mask-distance", title="The causal mask by distances", kernels={"causal_mask": _by_distance}
    ),
)
