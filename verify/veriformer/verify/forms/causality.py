"""Causality of a layer, determined by which positions of its result depend on which input positions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.verify.forms.attention_calls import ALWAYS

CAUSALITY = ("as it is asked", ALWAYS)

LENGTH = 5
"""Positions that are read."""

_WIDTH = 4


def causality_of(layer: Callable[[Tensor], Tensor], width: int) -> tuple[str, ...]:
    """Return the values of ``CAUSALITY`` that a layer may have by default, given ``[1, LENGTH, width]``.

    A layer each of whose positions reads every other is not causal; one whose later positions read all that earlier
    ones read, and more, always is, be its diagonal right or not. What reads otherwise, or cannot be called so, may be
    either with a fault.
    """
    with contextlib.suppress(Exception), torch.random.fork_rng(), torch.no_grad():  # its refusals are told elsewhere
        found = _reads(layer, width)
        if bool(found.all()):
            return CAUSALITY[:1]
        if _hides_what_comes(found):
            return CAUSALITY[1:]
    return CAUSALITY


def _hides_what_comes(found: Tensor) -> bool:
    """Return whether each position reads a prefix, never shorter than the one before, and the last a longer one."""
    counts = found.sum(-1)
    runs = torch.arange(found.shape[-1]) < counts[:, None]
    return torch.equal(found, runs) and bool((counts.diff() >= 0).all()) and bool(counts[0] < counts[-1])


def causality_of_function(attention: Callable[[Tensor, Tensor, Tensor], Tensor]) -> tuple[str, ...]:
    """Return the values of ``CAUSALITY`` that attention over ``[1, 1, n, d]`` may have by default."""
    return causality_of(lambda x: attention(x[None], x[None], x[None])[0], _WIDTH)


def follows_flag(make: Callable[[bool], Callable[[Tensor], Tensor]], width: int) -> bool:
    """Return whether a layer reads every position if it is made without a flag, and not every one with it."""
    with contextlib.suppress(Exception), torch.random.fork_rng(), torch.no_grad():  # it cannot be made, or called, so
        without, with_flag = (_reads(make(flag), width) for flag in (False, True))
        return bool(without.all()) and not bool(with_flag.all())
    return False


def _reads(layer: Callable[[Tensor], Tensor], width: int) -> Tensor:
    x = torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(0))
    return reads(lambda x: _finite(layer(x)), x, torch.neg)


def reads(call: Callable[[Tensor], Tensor], x: Tensor, other: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the dependence of the result's positions (first axis) on those of the input, bool ``[n, n]``.

    x, and the result: one row of n positions, ``[1, n, …]`` and ``[1, n, d]``. other: gives the replacement of a
    position.
    """
    usual, n = call(x), x.shape[1]
    found = torch.zeros(n, n, dtype=torch.bool)
    for j in range(n):
        changed = x.clone()
        changed[:, j] = other(x[:, j])
        found[:, j] = (call(changed) != usual)[0].any(-1)
    return found


def _finite(y: Tensor) -> Tensor:
    """Return the result itself. Raises ValueError for another shape, and for what is no number."""
    if y.ndim != 3 or y.shape[:2] != (1, LENGTH) or not bool(y.isfinite().all()):
        raise ValueError(f"expected finite numbers of shape [1, {LENGTH}, d], got {tuple(y.shape)}")
    return y
