"""Softmax and log-sum-exp as records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np

from veriformer.spec.logsumexp import logsumexp, logsumexp_vjp
from veriformer.spec.points import equals
from veriformer.spec.softmax import softmax, softmax_vjp
from veriformer.verify.operation import Index, Operation, Refusal
from veriformer.verify.operations.changes import nudged
from veriformer.verify.strategies import axis_of, choice, long_shapes, shapes, sizes, values, widths
from veriformer.verify.trial import Arguments, Trial


def axis_in(a: Mapping[str, Any]) -> int:
    """The axis of a call, the last where it names none."""
    return int(a.get("dim", -1))


def _log_total(xp: Any, z: Any, axis: int) -> Any:
    """log Σ e^z with the axis kept."""
    m = xp.max(z, axis=axis, keepdims=True)
    return m + xp.log(xp.sum(xp.exp(z - m), axis=axis, keepdims=True))


def _softmax(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [softmax(xp, a["z"], axis_in(a))]


def _softmax_by_log(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """e^{z − log Σ e^z}, the form of log-softmax and of recomputation from a saved log-sum-exp."""
    return [xp.exp(a["z"] - _log_total(xp, a["z"], axis_in(a)))]


def _softmax_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"z": softmax_vjp(xp, a["z"], g, axis_in(a))}


def _softmax_vjp_by_log(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    p = _softmax_by_log(xp, a)[0]
    return {"z": p * (g - xp.sum(p * g, axis=axis_in(a), keepdims=True))}


def through_maximum(xp: Any, z: Any, dz: Any, dm: Any, axis: int) -> Any:
    """dz with what flows through the maximum: 0 over the reals, and in floats what rounding left of it."""
    highest = equals(z - xp.max(z, axis=axis, keepdims=True), 0)
    return xp.where(highest, dz + (dm - xp.sum(dz, axis=axis, keepdims=True)), dz)


def _softmax_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """e (g / s − Σ g e / s²) with s = Σ e, as the chain rule gives it for e / s."""
    z, axis = a["z"], axis_in(a)
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    s = xp.sum(e, axis=axis, keepdims=True)
    dz = e * (g / s - xp.sum(g * e, axis=axis, keepdims=True) / s / s)
    return {"z": through_maximum(xp, z, dz, 0, axis)}


def _logsumexp(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [logsumexp(xp, a["z"], axis_in(a))]


def _logsumexp_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"z": logsumexp_vjp(xp, a["z"], g, axis_in(a))}


def _logsumexp_vjp_by_log(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    axis = axis_in(a) % a["z"].ndim
    shape = a["z"].shape
    return {"z": _softmax_by_log(xp, a)[0] * xp.reshape(g, (*shape[:axis], 1, *shape[axis + 1 :]))}


def _logsumexp_vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    """(g / s) e with s = Σ e, as the chain rule gives it for max + log s."""
    z, axis = a["z"], axis_in(a) % a["z"].ndim
    g = xp.reshape(g, (*z.shape[:axis], 1, *z.shape[axis + 1 :]))
    e = xp.exp(z - xp.max(z, axis=axis, keepdims=True))
    dz = e * (g / xp.sum(e, axis=axis, keepdims=True))
    return {"z": through_maximum(xp, z, dz, g, axis)}


def draw_scores(trial: Trial, least_rank: int = 1) -> Arguments:
    """Scores of rank up to 4, structured along an axis with at least one finite entry; the last may be left unsaid."""
    others = trial.draw(shapes(least_rank - 1, 3, 5))
    axis = trial.draw(st.one_of(st.none(), axis_of(len(others) + 1), axis_of(len(others) + 1)))
    named: Arguments = {} if axis is None else {"dim": axis}
    kind = trial.draw(values())
    x = kind.array(*others, trial.fitted("n", trial.draw(widths())))
    if trial.draw(st.integers(0, 3)) == 3:
        x = _hide_some(kind.rng, x)
    return {"z": trial.tensor(np.moveaxis(x, -1, axis_in(named))), **named}


def _hide_some(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    hidden = rng.random(x.shape) < 0.4
    np.put_along_axis(hidden, rng.integers(0, x.shape[-1], (*x.shape[:-1], 1)), False, -1)
    return np.where(hidden, -np.inf, x)


def _slice(trial: Trial, reduced: bool) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One index of an axis other than the one that the operation is about."""
    whole = draw_scores(trial, least_rank=2)
    z = whole["z"]
    axis = axis_in(whole) % z.ndim
    along = trial.draw(choice(*(i for i in range(z.ndim) if i != axis)))
    i = trial.draw(st.integers(0, z.shape[along] - 1))
    index = tuple(slice(i, i + 1) if j == along else slice(None) for j in range(z.ndim))
    kept = tuple(one for j, one in enumerate(index) if not (reduced and j == axis))
    return whole, {**whole, "z": z[index]}, {"result": kept, "z": index}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("gaussian", "offset", "one-signed")))
    n = trial.draw(sizes(2))
    a: Arguments = {"z": trial.tensor(kind.array(n, n)), "dim": 0}
    return a, {"z": {**a, "z": nudged(trial, a["z"], kind.rng)}, "dim": {**a, "dim": 1}}


def _bulk(trial: Trial) -> Arguments:
    return {"z": trial.tensor(2.0 * trial.draw(values(("gaussian", "one-signed", "ties"))).array(40, 60))}


def long_scores(trial: Trial) -> tuple[np.random.Generator, np.ndarray]:
    """Rows longer than a tile, some with a peak that e^z cannot hold, and a generator for more."""
    loud = trial.draw(st.booleans())
    kind = trial.draw(values(("peaked",) if loud else ("gaussian", "one-signed", "peaked", "offset")))
    x = kind.array(*trial.draw(long_shapes()))
    return kind.rng, np.where(np.abs(x) == np.abs(x).max(-1, keepdims=True), 1e3, x) if loud else x


def _long(trial: Trial) -> Arguments:
    return {"z": trial.tensor(long_scores(trial)[1])}


def _ordinary(trial: Trial) -> Arguments:
    *lead, n = trial.draw(shapes(1, 3))
    shape = (*lead, trial.fitted("n", n))
    return {"z": trial.tensor(trial.draw(values(("gaussian",))).array(*shape))}


def _bad_axis(trial: Trial) -> Iterator[Refusal]:
    z = _ordinary(trial)["z"]
    yield Refusal("no tensor", {"z": None}, ("z",))
    yield Refusal("an axis too high", {"z": z, "dim": z.ndim}, ("dim",))
    yield Refusal("an axis too low", {"z": z, "dim": -z.ndim - 1}, ("dim",))
    yield Refusal("a bool for an axis", {"z": z, "dim": False}, ("dim",))


def _bad_softmax(trial: Trial) -> Iterator[Refusal]:
    yield from _bad_axis(trial)
    yield Refusal("an empty axis", {"z": trial.tensor(np.zeros((trial.draw(sizes()), 0)))}, ("z", "dim"))


SOFTMAX = Operation(
    name="softmax",
    draw=draw_scores,
    ordinary=_ordinary,
    long=_long,
    formulas=(_softmax, _softmax_by_log),
    vjps=(_softmax_vjp, _softmax_vjp_by_log, _softmax_vjp_by_chain),
    inputs=("z",),
    refusals=_bad_softmax,
    part=lambda trial: _slice(trial, reduced=False),
    changes=_changes,
    bulk=_bulk,
)

LOGSUMEXP = Operation(
    name="logsumexp",
    draw=draw_scores,
    ordinary=_ordinary,
    long=_long,
    formulas=(_logsumexp,),
    vjps=(_logsumexp_vjp, _logsumexp_vjp_by_log, _logsumexp_vjp_by_chain),
    inputs=("z",),
    refusals=_bad_axis,
    part=lambda trial: _slice(trial, reduced=True),
    changes=_changes,
    bulk=_bulk,
)
