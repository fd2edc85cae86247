"""Draws shared by softmax and log-sum-exp: scores, the axis of the operation, and scores shifted or huge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.arithmetic.exact_inputs import exactly_equal
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import Index
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.strategies import axis_of, choice, shapes, sizes, values, widths


def axis_in(a: Mapping[str, Any]) -> int:
    """Return the axis of a call, the last where it names none."""
    return int(a.get("dim", -1))


def _log_total(xp: Any, z: Any, axis: int) -> Any:
    """Return log Σ e^z with the axis kept."""
    m = xp.max(z, axis=axis, keepdims=True)
    return m + xp.log(xp.sum(xp.exp(z - m), axis=axis, keepdims=True))


def softmax_by_log(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Return e^{z − log Σ e^z}, the form of log-softmax and of recomputation from a saved log-sum-exp."""
    return [xp.exp(a["z"] - _log_total(xp, a["z"], axis_in(a)))]


def softmax_scaled(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    """Compute e^{(cz − cm) / c}: products are rounded before the subtraction, as with c = log₂e in kernels.

    A number of one bit more than a power of two stands for the constant, whose own rounding shifts both alike. Nothing
    for halves, in which products of this size are not formed.
    """
    z, axis = a["z"], axis_in(a)
    if isinstance(xp, Float | RunningError) and xp.format.precision < FORMATS["fp32"].precision:
        return []
    m = xp.max(z, axis=axis, keepdims=True)
    e = xp.exp((z * 1.5 - m * 1.5) / 1.5)
    return [e / xp.sum(e, axis=axis, keepdims=True)]


def through_maximum(xp: Any, z: Any, dz: Any, dm: Any, axis: int) -> Any:
    """Return dz with what flows through the maximum: 0 over the reals, and in floats what rounding left of it."""
    highest = exactly_equal(z - xp.max(z, axis=axis, keepdims=True), 0)
    return xp.where(highest, dz + (dm - xp.sum(dz, axis=axis, keepdims=True)), dz)


def draw_scores(trial: Trial, least_rank: int = 1) -> Arguments:
    """Draw scores of rank up to 4, structured along an axis, at least one finite; the last axis may be implied."""
    large = trial.rows(least_rank=least_rank - 1)
    others = trial.draw(shapes(least_rank - 1, 3, 5)) if large is None else large[:-1]
    axis = trial.draw(st.one_of(st.none(), axis_of(len(others) + 1), axis_of(len(others) + 1)))
    named: Arguments = {} if axis is None else {"dim": axis}
    kind = trial.draw(values())
    x = kind.array(*others, trial.fitted("n", trial.draw(widths()) if large is None else large[-1]))
    if trial.draw(st.integers(0, 3)) == 3:
        x = _hide_some(kind.rng, x)
    return {"z": trial.tensor(np.moveaxis(x, -1, axis_in(named))), **named}


def _hide_some(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    hidden = rng.random(x.shape) < 0.4
    np.put_along_axis(hidden, rng.integers(0, x.shape[-1], (*x.shape[:-1], 1)), False, -1)
    return np.where(hidden, -np.inf, x)


def one_slice(trial: Trial, reduced: bool) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one index alone of an axis other than that of the operation."""
    whole = draw_scores(trial, least_rank=2)
    z = whole["z"]
    axis = axis_in(whole) % z.ndim
    along = trial.draw(choice(*(i for i in range(z.ndim) if i != axis)))
    i = trial.draw(st.integers(0, z.shape[along] - 1))
    index = tuple(slice(i, i + 1) if j == along else slice(None) for j in range(z.ndim))
    kept = tuple(one for j, one in enumerate(index) if not (reduced and j == axis))
    return whole, {**whole, "z": z[index]}, {"result": kept, "z": index}


def changed_scores(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    """Draw a call, and the same with its scores or its axis changed."""
    kind = trial.draw(values(("gaussian", "offset", "one-signed")))
    n = trial.draw(sizes(2))
    a: Arguments = {"z": trial.tensor(kind.array(n, n)), "dim": 0}
    return a, {"z": {**a, "z": perturbed(trial, a["z"], kind.rng)}, "dim": {**a, "dim": 1}}


def bulk_scores(trial: Trial) -> Arguments:
    """Draw many rows, whose sums show how they were taken."""
    return {"z": trial.tensor(2.0 * trial.draw(values(("gaussian", "one-signed", "ties"))).array(*bulk_shape(trial)))}


def bulk_shape(trial: Trial, width: tuple[int, int] = (32, 3000)) -> tuple[int, ...]:
    """Draw rows enough to tell how large rounding errors are on average."""
    trial.only_large(0.5)
    shape = trial.rows(width, (16, 400), least_rank=1)
    assert shape is not None
    return shape


def loud(trial: Trial, z: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """Return the scores as they are, or with the largest of each row at 1000, which e^z cannot hold."""
    if not trial.draw(choice(False, False, True)):
        return z
    size = z.abs().where(z.isfinite(), -torch.inf)
    return z.where(size != size.amax(axis, keepdim=True), 1e3)


def long_scores(trial: Trial) -> Arguments:
    """Draw rows of any length, some with a peak that e^z cannot hold, some with nothing but -inf in one half."""
    a = draw_scores(trial)
    return {**a, "z": half_hidden(trial, loud(trial, a["z"], axis_in(a)), axis_in(a))}


def half_hidden(trial: Trial, z: torch.Tensor, axis: int) -> torch.Tensor:
    """Return the scores as they are, or with -inf in the first or the last half of each row that keeps a finite
    entry.
    """
    n, part = z.shape[axis], trial.draw(choice(None, "first", "last", "first"))
    if part is None:
        return z
    hidden = range(n // 2) if part == "first" else range(n - n // 2, n)
    rest = z.index_fill(axis, torch.tensor(hidden, dtype=torch.int64), -torch.inf)
    return rest.where(rest.isfinite().any(axis, keepdim=True), z)


def ordinary_scores(trial: Trial) -> Arguments:
    """Draw Gaussian scores of any shape."""
    *lead, n = trial.draw(shapes(1, 3))
    shape = (*lead, trial.fitted("n", n))
    return {"z": trial.tensor(trial.draw(values(("gaussian",))).array(*shape))}


def few_rows(trial: Trial, least: int = 1, *, small: bool = False) -> tuple[int, int]:
    """Draw the number of rows and their length: small most often, or always."""
    ranges = {"rows": (least, 2000), "width": (2, 10000)}
    large = None if small else trial.sizes(ranges, lambda s: s["rows"] * s["width"])
    if large is not None:
        return large["rows"], large["width"]
    return trial.draw(sizes(least, 6)), trial.draw(widths())


def draw_shifted(trial: Trial) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Draw scores, the scores plus a constant, and that constant; all exact in the row's dtype."""
    n, m = few_rows(trial)
    step = trial.draw(choice(0.25, 0.125, 0.5))
    sign = trial.draw(choice(1.0, -1.0))
    c = sign * step * 2.0 ** (trial.format.precision - 1)
    z = step * trial.draw(values()).rng.integers(-20, 21, (n, m))
    return trial.tensor(z), trial.tensor(z + c), c


def draw_huge(trial: Trial) -> tuple[torch.Tensor, torch.Tensor, np.ndarray[Any, Any]]:
    """Draw scores up to near the format's largest number, one maximum a row; return them, log-softmax, and maxima.

    The log-softmax is 0 at the maximum, and elsewhere so low that its exponential is 0 in every format. Times log₂ e
    the scores and their differences stay in range.
    """
    n, m = few_rows(trial)
    rng = trial.draw(values()).rng
    top = 2.0 ** trial.draw(choice(13, trial.format.emax - 2))
    lower = rng.choice([-1.0, -0.5, 0.0, 0.5, -np.inf], (n, m)) * top
    peak = np.arange(m) == rng.integers(0, m, (n, 1))
    highest = rng.choice([-1.0, 1.0], (n, 1))  # one row may be far below another
    lower = np.where((highest > 0) | np.isneginf(lower), lower, -1.75 * top)
    z = np.where(peak, highest * top, lower)
    return trial.tensor(z), torch.as_tensor(np.where(peak, 0.0, -4096.0)), highest[:, 0] * top


def grant_one_bit(trial: Trial, reference: Reference) -> Reference:
    """Return the reference with one more subnormal in its bound: an exact 0 stands for a number below every format."""
    return Reference(reference.exact, reference.bound + trial.format.smallest_subnormal, scale=1.0, constant=True)
