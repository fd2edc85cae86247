"""Attention as a record: every option, alone and together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch
from numpy.typing import NDArray

from veriformer.spec.attention import attention, attention_vjp
from veriformer.spec.masks import visible
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.operations.masks import alignment
from veriformer.verify.strategies import sizes, values
from veriformer.verify.trial import Arguments, Trial

Shape = tuple[int, int, int, int, int, int, int]
"""B, H, G, n_q, n_k, d_k, d_v."""

_OPTIONS = ("mask", "bias", "is_causal", "window", "scale", "softcap", "keep", "alignment")


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: a[key] for key in _OPTIONS if key in a}
    return given | ({"dropout_p": a["dropout_p"]} if "keep" in a else {})


def _attention(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [attention(xp, a["q"], a["k"], a["v"], **_options(a))]


def _attention_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = attention_vjp(xp, a["q"], a["k"], a["v"], g, **_options(a))
    return dict(zip(("q", "k", "v", "bias"), found, strict=True))


def draw_shape(trial: Trial) -> Shape:
    """Small sizes; heads are a multiple of groups."""
    b, groups, repeats = (trial.draw(sizes(1, 3)) for _ in range(3))
    n_q, n_k, d_k, d_v = (trial.draw(sizes(1, largest)) for largest in (6, 7, 5, 4))
    return b, groups * repeats, groups, n_q, n_k, d_k, d_v


def draw_tensors(trial: Trial, shape: Shape) -> dict[str, torch.Tensor]:
    """Queries, keys and values of this shape, each of a kind of its own."""
    b, h, groups, n_q, n_k, d_k, d_v = shape
    axes = {"q": (b, h, n_q, d_k), "k": (b, groups, n_k, d_k), "v": (b, groups, n_k, d_v)}
    return {name: trial.tensor(trial.draw(values()).array(*axes[name])) for name in axes}


def broadcastable() -> st.SearchStrategy[tuple[bool, ...] | None]:
    """For the last two to four axes of the scores, whether each is full or 1; None leaves the argument out."""
    return st.none() | st.lists(st.booleans(), min_size=2, max_size=4).map(tuple)


def stretched(axes: tuple[bool, ...], full: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that has these axes full and the others 1, aligned to the right."""
    return tuple(n if whole else 1 for whole, n in zip(axes, full[len(full) - len(axes) :], strict=True))


def sees(trial: Trial, shape: Shape, arguments: Mapping[str, Any]) -> NDArray[np.bool_]:
    """Which query sees which key, [B, H, n_q, n_k]; a bias of −∞ hides too."""
    b, h, _, n_q, n_k, _, _ = shape
    options = {key: arguments[key] for key in ("mask", "is_causal", "window") if arguments.get(key) is not None}
    if "mask" in options:
        options["mask"] = np.asarray(options["mask"])
    seen = np.broadcast_to(visible(n_q, n_k, **options, **alignment(trial.claims)), (b, h, n_q, n_k))
    bias = arguments.get("bias")
    return seen if bias is None else seen & ~np.isneginf(bias.double().numpy())


def every_row_sees(trial: Trial, shape: Shape, arguments: Mapping[str, Any]) -> bool:
    """Whether no query is left without a key."""
    return bool(sees(trial, shape, arguments).any(-1).all())


def _draw_causal(trial: Trial, shape: Shape) -> dict[str, Any]:
    if not trial.draw(st.booleans()):
        return {}
    window = trial.draw(st.none() | sizes(1, shape[4] + 1))
    chosen: dict[str, Any] = {"is_causal": True} if window is None else {"is_causal": True, "window": window}
    chosen = chosen if every_row_sees(trial, shape, chosen) else {"is_causal": True}
    return chosen if every_row_sees(trial, shape, chosen) else {}


def _draw_mask(trial: Trial, shape: Shape, chosen: Mapping[str, Any]) -> dict[str, Any]:
    axes = trial.draw(broadcastable())
    if axes is None:
        return {}
    rng = trial.draw(values()).rng
    b, h, _, n_q, n_k, _, _ = shape
    for _ in range(8):
        drawn = stretched(axes, (b, h, n_q, n_k))
        mask = _hole_free(rng, drawn, n_k) if "window" in chosen else rng.random(drawn) < 0.6
        candidate = {**chosen, "mask": torch.as_tensor(mask)}
        if every_row_sees(trial, shape, candidate):
            return {"mask": candidate["mask"]}
    return {"mask": torch.ones(stretched(axes, (b, h, n_q, n_k)), dtype=torch.bool)}


def _hole_free(rng: np.random.Generator, drawn: tuple[int, ...], n_k: int) -> NDArray[np.bool_]:
    """A mask that hides the first keys or the last ones of each row: with a window others may be read in two ways."""
    edge = rng.integers(0, n_k + 1, (*drawn[:-1], 1))
    j = np.arange(drawn[-1])
    return np.asarray(j >= edge if rng.random() < 0.5 else j < edge)


def _draw_bias(trial: Trial, shape: Shape, chosen: Mapping[str, Any]) -> dict[str, Any]:
    axes = trial.draw(broadcastable())
    if axes is None:
        return {}
    kind = trial.draw(values())
    b, h, _, n_q, n_k, _, _ = shape
    drawn = stretched(axes, (b, h, n_q, n_k))
    bias = trial.tensor(kind.array(*drawn))
    hiding = torch.where(torch.as_tensor(kind.rng.random(drawn) < 0.15), -torch.inf, bias)
    return {"bias": hiding if every_row_sees(trial, shape, {**chosen, "bias": hiding}) else bias}


def draw_options(trial: Trial, shape: Shape) -> dict[str, Any]:
    """Every option of a call, each left out or given, so that every query sees a key."""
    chosen = _draw_causal(trial, shape)
    chosen |= _draw_mask(trial, shape, chosen)
    chosen |= _draw_bias(trial, shape, chosen)
    scale = trial.draw(st.sampled_from([None, 1.0, 0.3, -0.7, 2.0, 0.0]))
    softcap = trial.draw(st.sampled_from([None, None, 2.0, 0.5, 30.0]))
    chosen |= {} if scale is None else {"scale": scale}
    chosen |= {} if softcap is None else {"softcap": softcap}
    return chosen


def draw_attention(trial: Trial) -> Arguments:
    """A call with any options at once."""
    shape = draw_shape(trial)
    return {**draw_tensors(trial, shape), **draw_options(trial, shape)}


def _ordinary(trial: Trial) -> Arguments:
    b, h, n, d = (trial.draw(sizes(1, 4)) for _ in range(4))
    kind = trial.draw(values(("gaussian",)))
    q, k, v = (trial.tensor(x) for x in kind.array(3, b, h, n, d))
    return {"q": q, "k": k, "v": v}


def _bad_attention(trial: Trial) -> Iterator[Refusal]:
    b, groups, n_k, d_k, d_v = (trial.draw(sizes(2, 4)) for _ in range(5))
    n_q, h = n_k + 1, 2 * groups
    kind = trial.draw(values(("gaussian",)))

    def made(*shape: int) -> torch.Tensor:
        return trial.tensor(kind.array(*shape))

    good = {"q": made(b, h, n_q, d_k), "k": made(b, groups, n_k, d_k), "v": made(b, groups, n_k, d_v)}
    for name in good:
        yield Refusal(f"no {name}", {**good, name: None}, (name,))
        yield Refusal(f"{name} of rank 3", {**good, name: good[name][0]}, (name,))
        yield Refusal(f"{name} of another dtype", {**good, name: good[name].to(_other(trial.dtype))}, ("q", "k", "v"))
    yield Refusal("batches that differ", {**good, "k": made(b + 1, groups, n_k, d_k)}, ("q", "k", "v"))
    yield Refusal("a batch of one key set", {**good, "k": good["k"][:1], "v": good["v"][:1]}, ("q", "k", "v"))
    yield Refusal("widths that differ", {**good, "k": made(b, groups, n_k, d_k + 1)}, ("q", "k"))
    yield Refusal("lengths that differ", {**good, "v": made(b, groups, n_k + 1, d_v)}, ("k", "v"))
    yield Refusal("one value for all keys", {**good, "v": good["v"][:, :, :1]}, ("k", "v"))
    yield Refusal("groups that differ", {**good, "v": made(b, h, n_k, d_v)}, ("k", "v"))
    yield Refusal("groups that do not divide the heads", {**good, "q": made(b, h + 1, n_q, d_k)}, ("q", "k", "v"))
    yield Refusal("more groups than heads", {**good, "q": made(b, 1, n_q, d_k)}, ("q", "k", "v"))
    yield from _bad_options(good, n_q, n_k)


def _other(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype is torch.float64 else torch.float64


def _bad_options(good: Arguments, n_q: int, n_k: int) -> Iterator[Refusal]:
    for name, made in (("mask", torch.ones), ("bias", torch.zeros)):
        dtype = torch.bool if name == "mask" else good["q"].dtype
        yield Refusal(f"a {name} too wide", {**good, name: made(n_q, n_k + 1, dtype=dtype)}, (name,))
        yield Refusal(f"a transposed {name}", {**good, name: made(n_k, n_q, dtype=dtype)}, (name,))
        yield Refusal(f"a {name} of rank 1", {**good, name: made(n_k, dtype=dtype)}, (name,))
        yield Refusal(f"a {name} of rank 5", {**good, name: made(1, 1, 1, n_q, n_k, dtype=dtype)}, (name,))
    yield Refusal("a mask of numbers", {**good, "mask": torch.ones(n_q, n_k, dtype=good["q"].dtype)}, ("mask",))
    yield Refusal("a mask of integers", {**good, "mask": torch.ones(n_q, n_k, dtype=torch.int64)}, ("mask",))
    yield Refusal("a window that is not causal", {**good, "window": 2}, ("window", "is_causal"))
    yield Refusal("an empty window", {**good, "window": 0, "is_causal": True}, ("window",))
    yield Refusal("a cap of 0", {**good, "softcap": 0.0}, ("softcap",))
    yield Refusal("a negative cap", {**good, "softcap": -1.0}, ("softcap",))
    yield Refusal("dropout below 0", {**good, "dropout_p": -0.1}, ("dropout_p",))
    yield Refusal("dropout above 1", {**good, "dropout_p": 1.1}, ("dropout_p",))
    yield Refusal("dropout above 1 in training", {**good, "dropout_p": 1.1, "training": True}, ("dropout_p",))


ATTENTION = Operation(
    name="attention",
    draw=draw_attention,
    ordinary=_ordinary,
    formulas=(_attention,),
    vjps=(_attention_vjp,),
    inputs=("q", "k", "v", "bias"),
    refusals=_bad_attention,
    reading=alignment,
)
