"""Cases of a comparison, the most telling first, and the arguments of each.

These are the given ones, under other values, sizes, layouts and formats.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from veriformer.verify.comparison.case import GIVEN, Case
from veriformer.verify.strategies.layouts import Layout
from veriformer.verify.strategies.values import KINDS, Values

Inputs = tuple[list[Any], dict[str, Any]]
"""Positional arguments and those by name."""

_FACTORS = {"large": 2.0**7, "huge": 2.0**40, "tiny": 2.0**-40}
_OFFSET = 1000.0


def as_inputs(given: Any) -> Inputs:
    """Convert the result of ``get_inputs`` or ``get_init_inputs`` to the arguments of a call."""
    if isinstance(given, Mapping):
        return [], dict(given)
    if isinstance(given, list | tuple):
        parts = list(given)
        if len(parts) == 2 and isinstance(parts[0], list | tuple) and isinstance(parts[1], dict):
            return list(parts[0]), dict(parts[1])
        return parts, {}
    return [given], {}


def tensors(inputs: Inputs) -> list[torch.Tensor]:
    """Return every tensor among the arguments, in order."""
    return [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def draw_arguments(given: Inputs, case: Case) -> Inputs:
    """Derive the arguments of a case from the given ones."""
    leaves, form = pytree.tree_flatten(given)
    made = [_leaf(leaf, place, case) for place, leaf in enumerate(leaves)]
    if case.alias is not None:
        places = [i for i, leaf in enumerate(made) if isinstance(leaf, torch.Tensor)]
        first, second = (places[i] for i in case.alias)
        made[second] = made[first]
    found: Inputs = pytree.tree_unflatten(made, form)
    return found


def resize(value: Any, sizes: tuple[tuple[int, int], ...]) -> Any:
    """Return a number with its size replaced, if it is one of these sizes."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return dict(sizes).get(value, value)


def _leaf(leaf: Any, place: int, case: Case) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return resize(leaf, case.sizes)
    x = _crop(leaf.detach(), dict(case.sizes))
    if x.is_floating_point():
        x = _values(x, place, case)
        x = x.to(getattr(torch, case.dtype)) if case.dtype else x
        if case.jitter:
            generator = torch.Generator().manual_seed(case.seed + 7919 * place + 1)
            noise = torch.rand(x.shape, generator=generator, dtype=torch.float64) * 2 - 1
            x = (x.double() * (1 + case.jitter * noise)).to(x.dtype)
    elif not x.is_complex() and case.values not in (GIVEN, "exchanged") and x.numel():
        x = _whole(x, place, case)
    return laid_out(x, case.layout)


def _crop(x: torch.Tensor, sizes: dict[int, int]) -> torch.Tensor:
    """Return the first entries along every axis whose size is replaced, repeated where there are too few."""
    for axis, size in enumerate(x.shape):
        new = sizes.get(size, size)
        if new < size:
            x = x.narrow(axis, 0, new)
        elif new > size:
            x = x.index_select(axis, torch.arange(new) % size)
    return x.contiguous()


def _whole(x: torch.Tensor, place: int, case: Case) -> torch.Tensor:
    """Draw integers or booleans from the range of the given ones."""
    low, high = int(x.min()), int(x.max())
    if case.values in ("ties", "constant", "zeros"):
        return torch.full_like(x, low if case.values == "zeros" else high)
    generator = torch.Generator().manual_seed(case.seed * 31 + place)
    return torch.randint(low, high + 1, x.shape, generator=generator).to(x.dtype)


def _values(x: torch.Tensor, place: int, case: Case) -> torch.Tensor:
    if case.values == GIVEN or not x.numel():
        return x
    if case.values == "exchanged":
        return _exchange(x)
    finite = x[x.isfinite()].double()
    if not finite.numel() or bool((finite == finite.round()).all() and torch.unique(finite).numel() <= 2):
        return x  # a mask, or the like
    scale = float(finite.square().mean().sqrt()) or 1.0
    made = torch.from_numpy(_array(case.values, tuple(x.shape), np.random.SeedSequence([case.seed, place])) * scale)
    if case.limits == "positive":
        made = made.abs()
    elif case.limits == "range":
        made = made.clamp(float(finite.min()), float(finite.max()))
    sums = x.double().sum(-1) if x.ndim else x.double()
    if bool((x >= 0).all()) and bool(((sums - 1).abs() < math.sqrt(torch.finfo(x.dtype).eps)).all()):
        made = made.abs() + torch.finfo(x.dtype).tiny
        made = made / made.sum(-1, keepdim=True)  # rows of probabilities stay what they are
    return made.to(x.dtype)


def _array(kind: str, shape: tuple[int, ...], seeds: np.random.SeedSequence) -> np.ndarray[Any, np.dtype[np.float64]]:
    seed = int(seeds.generate_state(1)[0])
    ordinary = Values("gaussian", seed).array(*shape)
    if kind in KINDS:
        return Values(kind, seed).array(*shape)
    if kind in _FACTORS:
        return ordinary * _FACTORS[kind]
    if kind == "far offset":
        return ordinary + _OFFSET
    if kind in ("positive", "negative"):
        return (0.1 + np.abs(ordinary)) * (1 if kind == "positive" else -1)
    return np.full(shape, 0.0 if kind == "zeros" else 1.5)


def _exchange(x: torch.Tensor) -> torch.Tensor:
    """Exchange two entries from the middle: sums, ends and counts remain."""
    flat = x.clone().flatten()
    unequal = (flat != flat[flat.numel() // 2]).nonzero().flatten()
    if unequal.numel():
        a, b = flat.numel() // 2, int(unequal[unequal.numel() // 3])
        flat[a], flat[b] = flat[b].clone(), flat[a].clone()
    return flat.reshape(x.shape)


def laid_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """Return the same numbers in another memory layout; expanded, the first row stands for all."""
    if layout == GIVEN or x.ndim == 0 or not x.numel():
        return x
    if layout == "shifted":
        return torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape)
    if layout == "channels last":
        return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x
    return Layout(layout, 0 if layout == "expanded" else x.ndim - 1).of(x)


def with_other_number(init: Inputs, call: Inputs, place: int) -> tuple[Inputs, Inputs] | None:
    """Return both with the number at a place changed: floats to 3/4, booleans negated; None past the end.

    Places count the floats and booleans of the class's arguments first, then the call's.
    """
    leaves, form = pytree.tree_flatten((init, call))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, float | bool)]
    if place >= len(places):
        return None
    value = leaves[places[place]]
    leaves[places[place]] = (not value) if isinstance(value, bool) else value * 0.75
    found: tuple[Inputs, Inputs] = pytree.tree_unflatten(leaves, form)
    return found


def draw_weights(state: Mapping[str, torch.Tensor], parameters: frozenset[str], seed: int) -> dict[str, torch.Tensor]:
    """Draw weights that are no initial ones: none is constant, so that each shows in the result.

    parameters: the names of those that are learned; of the rest only running statistics are drawn.
    """
    generator = torch.Generator().manual_seed(seed + 1)
    found = {}
    for name, x in state.items():
        running = name.rpartition(".")[2] in ("running_mean", "running_var")
        if not x.is_floating_point() or not x.numel() or not (name in parameters or running):
            found[name] = x.clone()
            continue
        noise = torch.randn(x.shape, generator=generator, dtype=torch.float64)
        y = x.double()
        if bool((y == y.flatten()[0]).all()):
            first = float(y.flatten()[0])
            y = 0.25 * noise if first == 0 else first * torch.exp(0.25 * noise)
        else:
            y = y * (1 + 0.5 * torch.tanh(noise))
        found[name] = y.to(x.dtype)
    return found


Sizes = tuple[tuple[int, int], ...]
Named = Iterator[tuple[str, Case]]

WORKING = 2**14
"""Numbers among the arguments up to which a call is quick."""

CAPS = (256, 128, 64, 32, 16, 8, 4)
_INSIDE = 64
"""A whole number among the class's arguments from which on it is a size, though no tensor has it."""

_KINDS = (
    "peaked",
    "positive",
    "negative",
    "integers",
    "ties",
    "offset",
    "spread",
    "large",
    "zeros",
    "constant",
    "far offset",
    "small",
    "sparse",
    "duplicates",
    "huge",
    "tiny",
)
_ALIASES, _SIZES, _NUMBERS = 2, 6, 4


def symbols(inputs: Inputs, init: Inputs) -> list[int]:
    """Return the replaceable sizes, the most frequent first: those of axes, and large numbers among arguments."""
    counts = Counter(size for x in tensors(inputs) for size in x.shape if size > 1)
    inside = (v for v in pytree.tree_leaves(init) if isinstance(v, int) and not isinstance(v, bool) and v >= _INSIDE)
    counts.update(inside)
    return [size for size, _ in counts.most_common()]


def halve(size: int, cap: int) -> int:
    """Halve a size until it is at most cap."""
    while size > cap and size > 3:
        size //= 2
    return size


def further_cases(
    usual: Case, base: Case, given: Inputs, init: Inputs, *, module: bool, drawing: bool, random: bool
) -> Named:
    """Yield every case beside the given one.

    usual: at working sizes. drawing: whether weights are drawn anew. random: whether calls as given draw numbers.
    """
    plain = usual.but(drawn=drawing)
    floating = [x for x in tensors(given) if x.is_floating_point()]
    yield "given again", base.but(seed=1)
    yield "small", usual
    yield "exchanged", usual.but(values="exchanged")
    if drawing:
        yield "weights", plain
    yield "other", plain.but(values="gaussian", seed=2)
    yield "gradient", plain.but(values="gaussian", seed=3, gradient=True)
    yield "other again", plain.but(values="gaussian", seed=4)
    yield "other still", plain.but(values="gaussian", seed=5)
    if module:
        yield from ((mode, plain.but(values="gaussian", seed=6, mode=mode)) for mode in ("train", "eval") if not random)
    yield from _laid_out(plain, given)
    if floating:
        yield from ((f"values {kind}", plain.but(values=kind, seed=10 + i)) for i, kind in enumerate(_KINDS))
    yield from _sized(plain, given, init)
    yield from _aliased(plain, given)
    for i, dtype in enumerate(("bfloat16", "float16", "float64")):
        if floating and any(str(x.dtype) != f"torch.{dtype}" for x in floating):
            yield f"in {dtype}", plain.but(values="gaussian", seed=40 + i, dtype=dtype)
    yield "gradient positive", plain.but(values="positive", seed=50, gradient=True)
    for place in range(_NUMBERS):
        yield f"number {place}", plain.but(values="gaussian", seed=60, scalar=place)


def _laid_out(plain: Case, given: Inputs) -> Named:
    for i, layout in enumerate(("transposed", "sliced", "shifted", "expanded", "channels last")):
        if layout != "channels last" or any(x.ndim == 4 for x in tensors(given)):
            yield layout, plain.but(values="gaussian", seed=30 + i, layout=layout)


def _sized(plain: Case, given: Inputs, init: Inputs) -> Named:
    sizes = dict(plain.sizes)
    known = symbols(given, init)
    tried = 0
    for new in (lambda n: n + 1, lambda n: 1, lambda n: 2 * n + 3):
        for size in known:
            now = sizes.get(size, size)
            if tried < _SIZES * 2 and new(now) != now:
                tried += 1
                changed = tuple({**sizes, size: new(now)}.items())
                yield f"size {size} as {new(now)}", plain.but(values="gaussian", seed=20, sizes=changed, resized=size)


def _aliased(plain: Case, given: Inputs) -> Named:
    found = tensors(given)
    pairs = [
        (i, j)
        for i, j in combinations(range(len(found)), 2)
        if found[i].shape == found[j].shape and found[i].dtype == found[j].dtype
    ]
    for pair in pairs[:_ALIASES]:
        yield f"alias {pair[0]} {pair[1]}", plain.but(values="gaussian", seed=7, alias=pair)
