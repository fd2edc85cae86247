"""Networks of two layers as records: the MLP, the feed-forward network, and SwiGLU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.layers.activations import activate, activate_vjp
from veriformer.spec.layers.dropout import dropout, dropout_vjp
from veriformer.spec.layers.feed_forward import feed_forward, feed_forward_vjp
from veriformer.spec.layers.linear import linear_vjp
from veriformer.spec.layers.mlp import mlp, mlp_vjp
from veriformer.spec.layers.swiglu import swiglu, swiglu_vjp
from veriformer.verify.operation import Formula, Index, Operation, Refusal, Vjp
from veriformer.verify.operations.changes import nudged, several
from veriformer.verify.script import Seed
from veriformer.verify.strategies import choice, leading_shapes, option, seeds, sizes, values
from veriformer.verify.trial import Arguments, Trial

WEIGHTS = ("w1", "b1", "w2", "b2")
GATED = ("w_gate", "w_up", "w_down")


def _tensors(a: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    return [a["x"], *(a[name] for name in names)]


def _options(a: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: a[name] for name in names if name in a}


def _mlp(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [mlp(xp, *_tensors(a, WEIGHTS), **_options(a, "activation"))]


def _mlp_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    found = mlp_vjp(xp, *[*_tensors(a, WEIGHTS), g], **_options(a, "activation"))
    return dict(zip(("x", *WEIGHTS), found, strict=True))


def _dropped(a: Mapping[str, Any]) -> dict[str, Any]:
    """The mask of dropout where a check knows it; without training there is none."""
    return _options(a, "activation", *(("dropout_p", "keep") if "keep" in a else ()))


def _feed_forward(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [feed_forward(xp, *_tensors(a, WEIGHTS), **_dropped(a))]


def _feed_forward_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", *WEIGHTS), feed_forward_vjp(xp, *[*_tensors(a, WEIGHTS), g], **_dropped(a)), strict=True))


def _folded(xp: Any, x: Any, w: Any, b: Any) -> Any:
    """x W + b with the bias as the weight of a feature that is always 1: it joins the sum wherever it likes."""
    one = xp.asarray(np.ones((*x.shape[:-1], 1)))
    return xp.matmul(xp.concat([x, one], axis=-1), xp.concat([w, xp.reshape(b, (1, b.shape[0]))], axis=0))


def _hidden(xp: Any, a: Mapping[str, Any], activation: str) -> tuple[Any, Any]:
    """Pre-activations, and what dropout leaves of the hidden values."""
    z = _folded(xp, a["x"], a["w1"], a["b1"])
    return z, dropout(xp, activate(xp, z, activation), a.get("dropout_p", 0.0), keep=a.get("keep"))


def _bias_in_the_sum(default: str) -> Formula:
    def formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
        _, h = _hidden(xp, a, a.get("activation", default))
        return [_folded(xp, h, a["w2"], a["b2"])]

    return formula


def _bias_in_the_sum_vjp(default: str) -> Vjp:
    def vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
        activation = a.get("activation", default)
        z, h = _hidden(xp, a, activation)
        dh, dw2, db2 = linear_vjp(xp, h, a["w2"], g)
        dropped = dropout_vjp(xp, h, a.get("dropout_p", 0.0), dh, keep=a.get("keep"))
        dx, dw1, db1 = linear_vjp(xp, a["x"], a["w1"], activate_vjp(xp, z, dropped, activation))
        return {"x": dx, "w1": dw1, "b1": db1, "w2": dw2, "b2": db2}

    return vjp


def _swiglu(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [swiglu(xp, *_tensors(a, GATED))]


def _swiglu_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return dict(zip(("x", *GATED), swiglu_vjp(xp, *[*_tensors(a, GATED), g]), strict=True))


def network(trial: Trial, lead: tuple[int, ...], d: int, f: int, o: int) -> dict[str, torch.Tensor]:
    """Input, weights and biases of a network of these widths."""
    return several(trial, {"x": (*lead, d), "w1": (d, f), "b1": (f,), "w2": (f, o), "b2": (o,)})


def gated(trial: Trial, lead: tuple[int, ...], d: int, f: int, o: int) -> dict[str, torch.Tensor]:
    """Input and weights of a gated network of these widths."""
    return several(trial, {"x": (*lead, d), "w_gate": (d, f), "w_up": (d, f), "w_down": (f, o)})


Tensors = Callable[[Trial, tuple[int, ...], int, int, int], dict[str, torch.Tensor]]


_WIDTHS = ((3, 5, 2), (2, 3, 4), (4, 1, 3), (1, 4, 1), (3, 2, 5), (1, 1, 2), (5, 4, 1), (2, 2, 2), (4, 6, 3))
"""Widths of input, hidden layer and output: seldom equal, each of them the largest and the smallest somewhere."""


def _activation(*default: str | None) -> st.SearchStrategy[dict[str, Any]]:
    return option("activation", *default, "relu", "sigmoid", "tanh", "gelu")


def draw_mlp(trial: Trial) -> Arguments:
    """Rows of any leading shape through any activation."""
    lead = trial.draw(leading_shapes(2, 3))
    return {**network(trial, lead, *trial.draw(choice(*_WIDTHS))), **trial.supported(trial.draw(_activation(None)))}


def draw_feed_forward(trial: Trial) -> Arguments:
    """The same; with a probability of dropout, which does nothing without training."""
    off = trial.option("dropout_p", 0.4, None, 0.0, 0.9)
    quiet = trial.option("training", None, *((True, False) if off.get("dropout_p") == 0.0 else (False,)))
    return {**draw_mlp(trial), **off, **quiet, **trial.option("generator", None, Seed(trial.draw(seeds())))}


def draw_swiglu(trial: Trial) -> Arguments:
    """Rows of any leading shape."""
    return gated(trial, trial.draw(leading_shapes(2, 3)), *trial.draw(choice(*_WIDTHS)))


def _ordinary(tensors: Tensors) -> Callable[[Trial], Arguments]:
    return lambda trial: tensors(trial, (trial.draw(sizes(1, 3)), 2), 3, 5, 4)


def _part(trial: Trial, draw: Callable[[Trial], Arguments]) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One index of the first axis."""
    whole = dict(draw(trial))
    whole["x"] = whole["x"][None] if whole["x"].ndim == 1 else whole["x"]
    i = trial.draw(st.integers(0, whole["x"].shape[0] - 1))
    index = (slice(i, i + 1),)
    return whole, {**whole, "x": whole["x"][index]}, {"result": index, "x": index}


def _changes(trial: Trial, tensors: Tensors, names: tuple[str, ...]) -> tuple[Arguments, dict[str, Arguments]]:
    a: dict[str, Any] = dict(tensors(trial, (2,), 3, 5, 2))
    rng = trial.draw(values()).rng
    changed: dict[str, Arguments] = {name: {**a, name: nudged(trial, a[name], rng)} for name in names}
    if "b1" in a:
        changed |= {f"activation {name}": {**a, "activation": name} for name in ("relu", "sigmoid", "tanh", "gelu")}
    return a, changed


def _bulk(tensors: Tensors) -> Callable[[Trial], Arguments]:
    return lambda trial: tensors(trial, (20,), 12, 10, 9)


_LONG = (((300,), 3, 5, 2), ((2,), 1030, 3, 2), ((2,), 3, 1030, 2), ((2,), 3, 2, 1030), ((130,), 70, 67, 65))
"""Rows, and widths of input, hidden layer and output: each of them longer than a tile somewhere."""


def _long(tensors: Tensors) -> Callable[[Trial], Arguments]:
    return lambda trial: tensors(trial, *trial.draw(choice(*_LONG)))


def _bad_tensors(trial: Trial, a: Mapping[str, Any], pairs: Mapping[str, tuple[str, ...]]) -> Iterator[Refusal]:
    """Each tensor missing, of another dtype, and longer along its first axis than the one that it meets."""
    other = torch.float32 if trial.dtype is torch.float64 else torch.float64
    yield Refusal("no x", {**a, "x": None}, ("x",))
    yield Refusal("x of another dtype", {**a, "x": a["x"].to(other)}, ("x", *pairs))
    for name, met in pairs.items():
        longer = torch.cat((a[name], a[name][:1]))
        yield Refusal(f"no {name}", {**a, name: None}, (name,))
        yield Refusal(f"{name} of another dtype", {**a, name: a[name].to(other)}, ("x", *pairs))
        yield Refusal(f"{name} too long", {**a, name: longer}, (name, *met))
        yield Refusal(f"{name} with an axis too many", {**a, name: a[name][None]}, (name, *met))


def _bad_network(trial: Trial) -> Iterator[Refusal]:
    a = network(trial, (2,), 3, 5, 4)
    yield from _bad_tensors(trial, a, {"w1": ("x",), "b1": ("w1",), "w2": ("w1", "b1"), "b2": ("w2",)})
    yield Refusal("one bias for all hidden units", {**a, "b1": a["b1"][:1]}, ("b1", "w1"))
    yield Refusal("one bias for all outputs", {**a, "b2": a["b2"][:1]}, ("b2", "w2"))
    yield Refusal("an unknown activation", {**a, "activation": "swish"}, ("activation",))
    yield Refusal("a missing activation", {**a, "activation": None}, ("activation",))


def _bad_feed_forward(trial: Trial) -> Iterator[Refusal]:
    yield from _bad_network(trial)
    a = network(trial, (2,), 3, 5, 4)
    for p in (-0.1, 1.1, True):
        yield Refusal(f"a probability of {p}", {**a, "dropout_p": p}, ("dropout_p",))
    yield Refusal("a probability above 1 in training", {**a, "dropout_p": 1.5, "training": True}, ("dropout_p",))
    yield Refusal("a number for a generator", {**a, "generator": 3}, ("generator",))


def _bad_gated(trial: Trial) -> Iterator[Refusal]:
    a = gated(trial, (2,), 3, 5, 4)
    yield from _bad_tensors(trial, a, {"w_gate": ("x", "w_up"), "w_up": ("x", "w_gate"), "w_down": ("w_gate", "w_up")})
    yield Refusal("one hidden unit to let through", {**a, "w_up": a["w_up"][:, :1]}, ("w_up", "w_gate"))


MLP = Operation(
    name="mlp",
    draw=draw_mlp,
    ordinary=_ordinary(network),
    formulas=(_mlp, _bias_in_the_sum("relu")),
    vjps=(_mlp_vjp, _bias_in_the_sum_vjp("relu")),
    inputs=("x", *WEIGHTS),
    refusals=_bad_network,
    part=lambda trial: _part(trial, draw_mlp),
    changes=lambda trial: _changes(trial, network, ("x", *WEIGHTS)),
    long=_long(network),
    sharp=False,
    forms=("fp32", "bf16"),
)

FEED_FORWARD = Operation(
    name="feed_forward",
    draw=draw_feed_forward,
    ordinary=_ordinary(network),
    formulas=(_feed_forward, _bias_in_the_sum("gelu")),
    vjps=(_feed_forward_vjp, _bias_in_the_sum_vjp("gelu")),
    inputs=("x", *WEIGHTS),
    refusals=_bad_feed_forward,
    part=lambda trial: _part(trial, draw_feed_forward),
    changes=lambda trial: _changes(trial, network, ("x", *WEIGHTS)),
    bulk=_bulk(network),
    long=_long(network),
    sharp=False,
    forms=("fp32", "bf16"),
)

SWIGLU = Operation(
    name="swiglu",
    draw=draw_swiglu,
    ordinary=_ordinary(gated),
    formulas=(_swiglu,),
    vjps=(_swiglu_vjp,),
    inputs=("x", *GATED),
    refusals=_bad_gated,
    part=lambda trial: _part(trial, draw_swiglu),
    changes=lambda trial: _changes(trial, gated, ("x", *GATED)),
    bulk=_bulk(gated),
    long=_long(gated),
    sharp=False,
    forms=("fp32", "bf16"),
)
