"""Operations on lists, texts and steps, and objects with state, computed by the formulas of the spec."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veriformer.spec.arithmetic import Float
from veriformer.spec.edits import Edit
from veriformer.spec.efficient.kv_cache import Cache, cache_reorder, cache_reset, kv_cache
from veriformer.spec.optimization.adam import adam_start
from veriformer.spec.optimization.sgd_momentum import sgd_momentum_start
from veriformer.verify.formulas.base import FormulaKernel, Rounding
from veriformer.verify.formulas.stepper import Stepper
from veriformer.verify.targets.impl import reference


class GradientClippingKernel(FormulaKernel):
    """Clipping by the global norm: lists of gradients, and their norm, which is in fp32 for halves."""

    def __call__(self, grads: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
        """Return the clipped gradients, each in its own dtype, and the norm before."""
        xp = Rounding(torch.float64, torch.float64)
        (*clipped, norm) = self.formula(xp, {"grads": [xp.asarray(g) for g in grads], "max_norm": max_norm})
        wide = torch.float64 if any(g.dtype == torch.float64 for g in grads) else torch.float32
        return [x.tensor.to(g.dtype) for x, g in zip(clipped, grads, strict=True)], norm.tensor.to(wide)


@dataclass(frozen=True)
class OptimizerKernel(FormulaKernel):
    """Optimizer whose step is its formula. made: what holds its parameters and states."""

    made: type[Stepper] = Stepper

    def __call__(self, params: Sequence[Tensor], lr: float, **options: Any) -> Stepper:
        """Return the optimizer."""
        return self.made(self.update, params, lr=lr, **options)

    def update(self, p: Tensor, g: Tensor, state: dict[str, Any], **options: Any) -> None:
        """Step a parameter by its gradient. state: what the formula keeps of it besides, empty before the first."""
        xp = self.arithmetic(p.dtype)
        start = _STARTS.get(self.operation)
        kept = {name: xp.asarray(x) if isinstance(x, Tensor) else x for name, x in state.items()}
        before = xp.asarray(p) if start is None else start(xp, [xp.asarray(p)])[0]._replace(**kept)
        (after,) = self.formula(xp, [before], [xp.asarray(g)], **options)
        if start is not None:
            state |= {name: getattr(x, "tensor", x) for name, x in after._asdict().items() if name != "theta"}
            after = after.theta
        p.copy_(after.tensor)


_STARTS: Mapping[str, Callable[..., Any]] = {
    "sgd_momentum": sgd_momentum_start,
    "adam": adam_start,
    "adamw": adam_start,
}
"""States that parameters start from, by optimizer; where there is none the state is the parameter alone."""


class ScheduleKernel(FormulaKernel):
    """Schedule of the learning rate, in fp64."""

    def __call__(self, step: int, **options: Any) -> float:
        """Return the rate of a step."""
        xp = Float()
        numbers = {name: x.item() if isinstance(x, np.generic) else x for name, x in options.items()}
        return float(xp.asarray(self.formula(xp, int(step), **numbers)).value)


class AccumulationKernel(FormulaKernel):
    """Accumulation of gradients: a backward pass for each micro-batch, and their mean in fp64 by the formula."""

    def __call__(self, loss_fn: Any, params: Sequence[Tensor], micro_batches: Iterable[Any]) -> list[Tensor]:
        """Return the gradient of each parameter, in its dtype."""
        xp = Rounding(torch.float64, torch.float64)
        sums, counts = [], list[int]()
        for batch in micro_batches:
            loss, count = loss_fn(batch)
            counts.append(int(count))
            grads = torch.autograd.grad(loss, params, allow_unused=True, materialize_grads=True)
            sums.append([xp.asarray(g) for g in grads])
        if not sums:
            sums, counts = [[xp.asarray(torch.zeros_like(p)) for p in params]], [0]
        return [g.tensor.to(p.dtype) for g, p in zip(self.formula(xp, sums, counts), params, strict=True)]


class TextKernel(FormulaKernel):
    """Operation on texts, whose formula is its implementation."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return what the formula gives."""
        return self.formula(*arguments, **options)


class BeamSearchKernel(FormulaKernel):
    """Beam search over a step that takes and gives tensors."""

    def __call__(self, step: Callable[[Tensor], Tensor], start: Tensor, **options: Any) -> tuple[Tensor, float]:
        """Return the best text and its score."""
        ids, score = self.formula(lambda ids: step(torch.as_tensor(ids)).tolist(), start.tolist(), **options)
        return torch.tensor(ids), score


@dataclass
class FormulaCache:
    """Cache of keys and values [B, G, m, d]. guard: our own cache, which checks arguments."""

    kernel: FormulaKernel
    guard: Any
    state: Cache

    @property
    def length(self) -> int:
        """Number of tokens so far."""
        return int(self.guard.length)

    @property
    def window(self) -> int | None:
        """Number of keys that a query sees, None for all."""
        return self.state.window

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append, and return all keys and values that are kept."""
        self.guard.update(k_new, v_new)
        xp = self.kernel.arithmetic(k_new.dtype)
        state, k, v = self.kernel.formula(xp, self.state, xp.asarray(k_new), xp.asarray(v_new))
        self.keep(state)
        return k.tensor.to(k_new.dtype), v.tensor.to(v_new.dtype)

    def keep(self, state: Cache) -> None:
        """Go on from a state, through which no gradient flows."""
        self.state = state._replace(k=state.k.xp.constant(state.k), v=state.v.xp.constant(state.v))

    def reorder(self, index: Tensor) -> None:
        """Go on from other elements."""
        self.guard.reorder(index)
        self.state = cache_reorder(self.state.k.xp, self.state, index.numpy())

    def reset(self) -> None:
        """Forget."""
        self.guard.reset()
        self.state = cache_reset(self.state)


class CacheKernel(FormulaKernel):
    """Caches that are updated by the formula."""

    def __call__(
        self, *sizes: int, dtype: torch.dtype, quantization: str | None = None, window: int | None = None
    ) -> FormulaCache:
        """Return an empty cache. sizes: batch, num_kv_heads, max_length, head_dim."""
        guard = reference.kv_cache(*sizes, dtype=dtype)
        width = None if window is None else int(window)
        empty = kv_cache(self.arithmetic(dtype), *map(int, sizes), quantization=quantization, window=width)
        return FormulaCache(self, guard, empty)


class CachedAttentionKernel(FormulaKernel):
    """Attention over a cache that holds a state of the spec."""

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, cache: FormulaCache, scale: float | None, softcap: float | None
    ) -> Tensor:
        """Append, and attend."""
        cache.guard.update(k, v)
        xp = self.arithmetic(q.dtype)
        out, state = self.formula(xp, *map(xp.asarray, (q, k, v)), cache.state, scale=scale, softcap=softcap)
        cache.keep(state)
        found: Tensor = out.tensor.to(q.dtype)
        return found


_KINDS: Mapping[str, type[FormulaKernel]] = {
    "clip_grad_norm": GradientClippingKernel,
    "accumulate_gradients": AccumulationKernel,
    "beam_search": BeamSearchKernel,
    "kv_cache": CacheKernel,
    "cached_attention": CachedAttentionKernel,
    **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), OptimizerKernel),
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), ScheduleKernel),
    **dict.fromkeys(("bpe_train", "bpe_encode", "unigram_segment"), TextKernel),
}


def kernel(operation: str, *edits: Edit, **settings: Any) -> FormulaKernel:
    """Return the operation computed by its formula after edits; settings: further fields of its kind of kernel."""
    if operation == "temperature_scale":  # a temperature may be smaller than any number of fp32
        settings = {"dtype": torch.float64, **settings}
    return _KINDS.get(operation, FormulaKernel)(operation, edits, **settings)
