"""Calls of attention: sizes, values, and every option alone or together, so that every query sees a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch
from numpy.typing import NDArray

from veriformer.spec.attention.causal_mask import visible
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.attention.causal_mask import alignment
from veriformer.verify.strategies import KINDS, axes_of_scores, choice, maybe, sizes, values, widths

Shape = tuple[int, int, int, int, int, int, int]
"""B, H, G, n_q, n_k, d_k, d_v."""


RANGES: dict[str, tuple[int, int]] = {
    "batch": (1, 64),
    "groups": (1, 64),
    "repeats": (1, 64),
    "n_q": (1, 600),
    "n_k": (2, 1200),
    "d_k": (2, 256),
    "d_v": (1, 256),
}
"""Smallest and largest size of the axes of a call; heads are groups times repeats."""


def work(s: Mapping[str, int]) -> float:
    """Return the number of scores; 64 products count as one, and so do 8 entries of q, k, v or the result."""
    groups, wide = s["batch"] * s["groups"], s["d_k"] + s["d_v"]
    per_head = s["n_q"] * (s["n_k"] * (1 + wide / 64) + wide / 8)
    return groups * (s["repeats"] * per_head + s["n_k"] * wide / 8)


Ranges = Mapping[str, tuple[int, int]]


def large_shape(
    trial: Trial, within: Ranges = RANGES, *, diagonal: bool = False, **ranges: tuple[int, int]
) -> Shape | None:
    """Draw the sizes of all axes together, within other ranges if given, or None; diagonal: values as wide as keys."""
    chosen = {**RANGES, **within, **ranges}
    if diagonal:
        del chosen["d_v"]
    ties = (("n_q", "n_k"), *(() if diagonal else (("d_k", "d_v"),)))
    found = trial.sizes(chosen, lambda s: work({**s, "d_v": s["n_k"]} if diagonal else s), ties)
    if found is None:
        return None
    b, groups, repeats, n_q, n_k, d_k, *rest = (found[name] for name in chosen)
    return b, groups * repeats, groups, n_q, n_k, d_k, rest[0] if rest else n_k


def draw_shape(trial: Trial, within: Ranges = RANGES, *, diagonal: bool = False, **ranges: tuple[int, int]) -> Shape:
    """Draw small sizes most often; heads are a multiple of groups. Large ones are as in ``large_shape``."""
    large = large_shape(trial, within, diagonal=diagonal, **ranges)
    if large is not None:
        return supported_shape(trial, large)
    b, groups, repeats = (trial.draw(sizes(1, 3)) for _ in range(3))
    n_q, n_k = trial.draw(sizes(1, 6)), trial.draw(widths(7))
    d_k, d_v = trial.draw(widths(5)), trial.draw(sizes(1, 4))
    return supported_shape(trial, (b, groups * repeats, groups, n_q, n_k, d_k, n_k if diagonal else d_v))


def supported_shape(trial: Trial, shape: Shape) -> Shape:
    """Return the sizes, or nearby ones that the target takes."""
    b, h, groups, n_q, n_k, d_k, d_v = shape
    if 1 < groups < h and not trial.supports("grouped heads"):
        groups = h
    if 1 == groups < h and not trial.supports("one key head for several"):
        groups = h
    n_q, n_k = trial.fitted("n", n_q), trial.fitted("n", n_k)
    d_k, d_v = trial.fitted("d_k", d_k), trial.fitted("d_v", d_v)
    n_q = n_k if not trial.supports("n_q ≠ n_k") else n_q
    d_v = d_k if not trial.supports("d_v ≠ d_k") else d_v
    return b, h, groups, n_q, n_k, d_k, d_v


def draw_tensors(trial: Trial, shape: Shape, kinds: Sequence[str] = KINDS) -> dict[str, torch.Tensor]:
    """Draw queries, keys and values of this shape, each of a kind of its own."""
    b, h, groups, n_q, n_k, d_k, d_v = shape
    axes = {"q": (b, h, n_q, d_k), "k": (b, groups, n_k, d_k), "v": (b, groups, n_k, d_v)}
    return {name: trial.tensor(trial.draw(values(kinds)).array(*axes[name])) for name in axes}


def broadcastable() -> st.SearchStrategy[tuple[bool, ...] | None]:
    """Return a strategy for the axes of a mask or bias; None leaves it out."""
    return maybe(axes_of_scores())


def stretched(axes: tuple[bool, ...], full: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that has these axes full and the others 1, aligned to the right."""
    return tuple(n if whole else 1 for whole, n in zip(axes, full[len(full) - len(axes) :], strict=True))


def sees(trial: Trial, shape: Shape, arguments: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Return the visible pairs, [B, H, n_q, n_k]; a bias of −∞ hides too."""
    b, h, _, n_q, n_k, _, _ = shape
    options = {key: arguments[key] for key in ("mask", "is_causal", "window") if arguments.get(key) is not None}
    if "mask" in options:
        options["mask"] = np.asarray(options["mask"])
    seen = np.broadcast_to(visible(n_q, n_k, **options, **alignment(trial.claims)), (b, h, n_q, n_k))
    bias = arguments.get("bias")
    return seen if bias is None else np.asarray(seen & ~np.isneginf(bias.double().numpy()))


def every_row_sees(trial: Trial, shape: Shape, arguments: Mapping[str, Any]) -> bool:
    """Return whether every query sees a key."""
    return bool(sees(trial, shape, arguments).any(-1).all())


def draw_causal(trial: Trial, shape: Shape) -> dict[str, Any]:
    """Draw causality, with a window or without, or none."""
    if not trial.draw(st.booleans()) and trial.supports("the default of is_causal"):
        return {}
    window = trial.draw(maybe(sizes(1, shape[4] + 1)))
    chosen: dict[str, Any] = {"is_causal": True} if window is None else {"is_causal": True, "window": window}
    chosen = chosen if every_row_sees(trial, shape, chosen) else {"is_causal": True}
    return trial.supported(chosen) if every_row_sees(trial, shape, chosen) else {}


def draw_hiding(trial: Trial, shape: Shape, rng: np.random.Generator) -> dict[str, Any]:
    """Draw causality, a mask, or both; at least two keys."""
    b, _, _, _, n_k, _, _ = shape
    causal = draw_causal(trial, shape)
    alone = trial.draw(choice(False, True, False))
    if causal and alone:
        return causal
    hidden = rng.integers(1, n_k, (b, 1, 1, 1))
    j = np.arange(n_k)
    mask = {"mask": torch.as_tensor(j < n_k - hidden if rng.random() < 0.5 else j >= hidden)}
    both = {**causal, **mask}
    return both if every_row_sees(trial, shape, both) else mask


def draw_mask(trial: Trial, shape: Shape, chosen: Mapping[str, Any], axes: tuple[bool, ...] | None) -> dict[str, Any]:
    """Draw a mask of these axes beside what was chosen before; rows that would see nothing see all."""
    if axes is None:
        return {}
    rng = trial.draw(values()).rng
    b, h, _, n_q, n_k, _, _ = shape
    drawn = stretched(axes, (b, h, n_q, n_k))
    mask = _hole_free(rng, drawn, n_k) if "window" in chosen else rng.random(drawn) < 0.6
    mask[0] |= len(drawn) == 4 and drawn[0] > 1 and rng.random() < 0.25  # the first element may see all
    blind = np.asarray(~sees(trial, shape, {**chosen, "mask": torch.as_tensor(mask)}).any(-1, keepdims=True))
    for axis, n in enumerate((1,) * (4 - len(drawn)) + drawn):
        blind = blind if n > 1 else np.any(blind, axis, keepdims=True)
    return {"mask": torch.as_tensor(mask | blind.reshape(blind.shape[4 - len(drawn) :]))}


def _hole_free(rng: np.random.Generator, drawn: tuple[int, ...], n_k: int) -> NDArray[np.bool_]:
    """Draw a mask that hides the first or the last keys of each row: with a window, others may be read in two ways."""
    edge = rng.integers(0, n_k + 1, (*drawn[:-1], 1))
    j = np.arange(drawn[-1])
    return np.asarray(j >= edge if rng.random() < 0.5 else j < edge)


def draw_bias(
    trial: Trial,
    shape: Shape,
    chosen: Mapping[str, Any],
    axes: tuple[bool, ...] | None,
    kinds: Sequence[str] = KINDS,
) -> dict[str, Any]:
    """Draw a bias of these axes beside the options chosen before, with some entries −∞ if every query keeps a key."""
    if axes is None:
        return {}
    kind = trial.draw(values(kinds))
    b, h, _, n_q, n_k, _, _ = shape
    drawn = stretched(axes, (b, h, n_q, n_k))
    bias = trial.tensor(kind.array(*drawn))
    hiding = torch.where(torch.as_tensor(kind.rng.random(drawn) < 0.15), -torch.inf, bias)
    return {"bias": hiding if every_row_sees(trial, shape, {**chosen, "bias": hiding}) else bias}


def draw_options(trial: Trial, shape: Shape, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """Return every option of a call, each left out or given, so that every query sees a key; kinds are those of the
    bias.
    """
    chosen = draw_causal(trial, shape)
    chosen |= draw_mask(trial, shape, chosen, trial.draw(broadcastable()))
    chosen |= draw_bias(trial, shape, chosen, trial.draw(broadcastable()), kinds)
    scale = trial.draw(choice(None, 1.0, 0.3, -0.7, 2.0, 0.0))
    softcap = trial.draw(choice(None, None, 2.0, 0.5, 30.0))
    chosen |= {} if scale is None else {"scale": scale}
    chosen |= {} if softcap is None else {"softcap": softcap}
    return trial.supported(chosen)


def with_nothing_left_out(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with every missing one given explicitly as its default."""
    nothing = dict.fromkeys(("mask", "bias", "window", "scale", "softcap", "generator"))
    return {**nothing, "is_causal": False, "dropout_p": 0.0, "training": False, **options}


def draw_attention(trial: Trial) -> Arguments:
    """Draw a call with any options at once."""
    shape = draw_shape(trial)
    options = draw_options(trial, shape)
    options = with_nothing_left_out(options) if trial.draw(choice(False, False, False, True)) else options
    return {**draw_tensors(trial, shape), **options}
