"""Other ways to the norms, clipping and the causal mask."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.faults.layers import ONE_PASS
from veriformer.verify.mutants.records import Variant, variant

_WELFORD = (
    "    r = 1 / xp.sqrt(_mean(xp, centred * centred) + eps)",
    "    m, squares = x[..., :1], 0 * x[..., :1]\n"
    "    for count in range(1, x.shape[-1]):\n"
    "        feature, before = x[..., count : count + 1], m\n"
    "        m = m + (feature - m) / (count + 1)\n"
    "        squares = squares + (feature - before) * (feature - m)\n"
    "    r = 1 / xp.sqrt(squares / x.shape[-1] + eps)",
)
"""Edit of layer normalisation: the sum of squares about a mean that is carried along, one feature at a time."""


def _library_rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return F.rms_norm(widen(x), x.shape[-1:], None if weight is None else widen(weight), eps).to(x.dtype)


def _by_length(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Compute √d x / √(Σ x² + d ε)."""
    wide, d = widen(x), x.shape[-1]
    y = wide * math.sqrt(d) / (wide.square().sum(-1, keepdim=True) + d * eps).sqrt()
    return (y if weight is None else y * widen(weight)).to(x.dtype)


def _clipped_by_norm_of_norms(grads: list[Tensor], c: float) -> tuple[list[Tensor], Tensor]:
    """Compute each gradient's norm, then the norm r s of these, with a power of two s against overflow."""
    dtype = torch.float64 if any(g.dtype == torch.float64 for g in grads) else torch.float32
    wide = [g.to(dtype) for g in grads if g.numel()]
    if not wide:
        return grads, torch.zeros((), dtype=dtype)
    s = _power_of_two(max(float(g.abs().max()) for g in wide))
    r = torch.linalg.vector_norm(torch.stack(torch._foreach_norm([g / s for g in wide])))
    if float(r) * s <= c:
        return grads, r * s
    return [(g.to(dtype) / s * (c / r)).to(g.dtype) for g in grads], r * s


def _power_of_two(x: float) -> float:
    """Return the largest power of two not above x; 1 for 0, NaN and infinities."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if 0 < x < math.inf else 1.0


def _lower_triangle(n_q: int, n_k: int, window: int | None) -> Tensor:
    seen = torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return seen if window is None else seen.triu(n_k - n_q - window + 1)


def _by_distance(n_q: int, n_k: int, window: int | None) -> Tensor:
    distance = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    return (distance >= 0) if window is None else (distance >= 0) & (distance < window)


VARIANTS: tuple[Variant, ...] = (
    variant(
        "layers-base",
        "The bases of the mutants",
        {name: kernel(name) for name in ("layer_norm", "rms_norm", "causal_mask")},
    ),
    variant(
        "norms-rsqrt",
        "Norms by the reciprocal square root",
        {name: kernel(name, rsqrt=True) for name in ("layer_norm", "rms_norm")},
    ),
    variant("layer-norm-welford", "Layer norm with Welford's variance", layer_norm=kernel("layer_norm", _WELFORD)),
    variant("layer-norm-fp64", "Layer norm in fp64 throughout", layer_norm=kernel("layer_norm", dtype=torch.float64)),
    variant(
        "layer-norm-one-pass",
        "The variance is E[x²] − E[x]², and the implementation says so",
        link="https://github.com/camlab-ethz/poseidon/issues/6",
        claims={"conventions": {"layer_norm.variance": "one-pass"}},
        layer_norm=kernel("layer_norm", ONE_PASS),
    ),
    variant("rms-norm-library", "PyTorch's RMS norm", rms_norm=_library_rms_norm),
    variant("rms-norm-by-length", "RMS norm through the Euclidean length", rms_norm=_by_length),
    variant(
        "clip-norm-of-norms",
        "The global norm as the norm of the gradients' norms",
        clip_grad_norm=_clipped_by_norm_of_norms,
    ),
    variant("causal-mask-tril", "The causal mask by triangles", causal_mask=_lower_triangle),
    variant("causal-mask-distance", "The causal mask by distances", causal_mask=_by_distance),
)
