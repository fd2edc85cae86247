"""Rotary position embeddings as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.positions.rope import rope, rope_vjp
from veriformer.verify.judging.operation import Index, Operation, Refusal
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import choice, leading_shapes, sizes, values
from veriformer.verify.targets.claims import Claims


def by_default(claims: Claims) -> dict[str, Any]:
    """The pairing where none is asked for: interleaved, unless the target claims otherwise."""
    return {"by_default": claims.convention("rope.pairing")}


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: a[name] for name in ("base", "scaling") if name in a}
    return {**given, "pairing": a.get("pairing", a["by_default"])}


def _rope(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [rope(xp, a["x"], a["positions"], **_options(a))]


def _rope_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"x": rope_vjp(xp, a["x"], a["positions"], g, **_options(a))}


def pairings(trial: Trial) -> dict[str, Any]:
    """Either pairing, or none; a target that claims to pair by halves need not know another way."""
    if trial.claims.deviates("rope.pairing"):
        return {}
    drawn: dict[str, Any] = trial.option("pairing", None, "half", "interleaved")
    return drawn


def _places(trial: Trial, shape: tuple[int, ...]) -> torch.Tensor:
    """Positions: in order from anywhere, in any order, repeated, negative, in quarters or thirds, or far out."""
    rng = trial.draw(values(("gaussian",))).rng
    kind = trial.draw(choice("order", "any", "fractions", "far", "numbers"))
    if kind == "order":
        p = np.broadcast_to(np.arange(shape[-1]) + int(rng.integers(0, 40)), shape)
    elif kind == "far":
        p = rng.integers(90000, 100001, shape) * rng.choice([1, -1])
    elif kind == "fractions":
        return trial.tensor(rng.integers(-64, 65, shape) / trial.draw(choice(4, 3)))
    else:
        p = rng.integers(-20, 21, shape)
    if kind == "numbers":
        return trial.tensor(p)
    return torch.as_tensor(np.array(p)).to(trial.draw(choice(torch.int64, torch.int32)))


def positions_for(trial: Trial, lead: tuple[int, ...], n: int) -> torch.Tensor:
    """Positions [n], or with all axes of the features but the last, each full or 1."""
    if not lead or trial.draw(st.booleans()):
        return _places(trial, (n,))
    return _places(trial, tuple(size if trial.draw(st.booleans()) else 1 for size in (*lead, n)))


def draw_rope(trial: Trial) -> Arguments:
    """Features of any leading shape, with any options."""
    lead, n, d = trial.draw(leading_shapes(2, 3)), trial.draw(sizes(1, 4)), trial.draw(choice(4, 2, 6, 8))
    return {
        "x": trial.tensor(trial.draw(values()).array(*lead, n, d)),
        "positions": positions_for(trial, lead, n),
        **trial.option("base", None, 500.0, 1e6, 2.0, 10000),
        **pairings(trial),
        **trial.option("scaling", None, None, ("linear", 2.0), ("ntk", 4.0), ("linear", 0.3), ("ntk", 1.5)),
    }


def features(trial: Trial, n: int = 3, d: int = 6) -> torch.Tensor:
    """Ordinary features [n, d]."""
    return trial.tensor(trial.draw(values(("gaussian", "one-signed"))).array(n, d))


def _ordinary(trial: Trial) -> Arguments:
    n = trial.draw(sizes(1, 4))
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(2, 3, n, 4)), "positions": torch.arange(n)}


def _part(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One position alone."""
    n = trial.draw(sizes(1, 4))
    a = {**draw_rope(trial), "x": features(trial, n), "positions": _places(trial, (n,))}
    i = trial.draw(st.integers(0, n - 1))
    index = (slice(i, i + 1),)
    return a, {**a, "x": a["x"][index], "positions": a["positions"][index]}, {"result": index, "x": index}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a: dict[str, Any] = {"x": features(trial), "positions": torch.tensor([2, 5, 1]), "base": 100.0}
    changed: dict[str, Arguments] = {
        "x": {**a, "x": nudged(trial, a["x"], trial.draw(values()).rng)},
        "positions": {**a, "positions": torch.tensor([2, 5, 3])},
        "base": {**a, "base": 20.0},
        "linear scaling": {**a, "scaling": ("linear", 2.0)},
        "NTK scaling": {**a, "scaling": ("ntk", 3.0)},
    }
    if not trial.claims.deviates("rope.pairing"):
        changed["pairing"] = {**a, "pairing": "half"}
    return a, changed


def _bulk(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian", "one-signed", "spread")))
    return {"x": trial.tensor(kind.array(30, 16)), "positions": torch.arange(30), **pairings(trial)}


def _long(trial: Trial) -> Arguments:
    n, d = trial.draw(choice((300, 6), (1030, 2), (70, 130), (3, 1030)))
    kind = trial.draw(values(("gaussian", "one-signed", "spread")))
    return {"x": trial.tensor(kind.array(2, n, d)), "positions": torch.arange(n), **pairings(trial)}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    x, at = features(trial), torch.arange(3)
    batched = torch.stack((x, x))[:, None]
    yield Refusal("no features", {"x": None, "positions": at}, ("x",))
    yield Refusal("no positions", {"x": x, "positions": None}, ("positions",))
    yield Refusal("an odd width", {"x": x[:, :5], "positions": at}, ("x",))
    yield Refusal("too many positions", {"x": x, "positions": torch.arange(4)}, ("positions", "x"))
    yield Refusal(
        "positions of the batch alone", {"x": batched, "positions": torch.zeros(2, 3).long()}, ("positions", "x")
    )
    yield Refusal("positions per feature", {"x": x, "positions": torch.zeros(3, 6).long()}, ("positions", "x"))
    yield Refusal("an unknown scaling", {"x": x, "positions": at, "scaling": ("cubic", 2.0)}, ("scaling",))
    for s in (0.0, -2.0, True):
        yield Refusal(f"scaling by {s}", {"x": x, "positions": at, "scaling": ("linear", s)}, ("scaling",))
    yield Refusal("scaling without a factor", {"x": x, "positions": at, "scaling": "linear"}, ("scaling",))
    yield Refusal("a bool for a base", {"x": x, "positions": at, "base": True}, ("base",))
    if not trial.claims.deviates("rope.pairing"):
        yield Refusal("an unknown pairing", {"x": x, "positions": at, "pairing": "thirds"}, ("pairing",))


ROPE = Operation(
    name="rope",
    draw=draw_rope,
    ordinary=_ordinary,
    formulas=(_rope,),
    vjps=(_rope_vjp,),
    inputs=("x",),
    refusals=_refusals,
    part=_part,
    changes=_changes,
    bulk=_bulk,
    long=_long,
    reading=by_default,
    forms=("fp32", "bf16"),
)
