"""Temperature scaling: its record and its laws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import Formula, InvalidCall, Vjp
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import assert_not_constant, constant, total
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.laws.pairs import same
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.along_axis import bulk_shape, draw_shifted, few_rows, loud
from veriformer.verify.operations.scores.softmax import SOFTMAX
from veriformer.verify.strategies import choice, leading_shapes, sizes, values, widths


def _quotient(xp: Any, a: Mapping[str, Any]) -> Any:
    """Return z / T, as it is usually written; only where T is far from underflow, for it overflows below."""
    z = a["logits"]
    return (z if a["temperature"] >= 2.0**-10 else z - xp.max(z, axis=-1, keepdims=True)) / a["temperature"]


def _formula(softmax: Formula) -> Formula:
    return lambda xp, a: softmax(xp, {"z": _quotient(xp, a)})


def _vjp(softmax_vjp: Vjp) -> Vjp:
    def vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
        found = softmax_vjp(xp, {"z": _quotient(xp, a)}, g)
        return {"logits": found["z"] / a["temperature"]} if found else {}

    return vjp


def draw_temperature(trial: Trial, least_rank: int = 0) -> Arguments:
    """Draw scores of rank up to 4, some at −∞, and temperatures on both sides of 1."""
    large = trial.rows(least_rank=least_rank)
    lead = trial.draw(leading_shapes(3, 3)) if large is None else large[:-1]
    lead = lead if len(lead) >= least_rank else (2,) * least_rank
    kind = trial.draw(values())
    z = kind.array(*lead, trial.draw(widths()) if large is None else large[-1])
    if trial.draw(st.integers(0, 3)) == 3:
        hidden = kind.rng.random(z.shape) < 0.4
        np.put_along_axis(hidden, kind.rng.integers(0, z.shape[-1], (*lead, 1)), False, -1)
        z = np.where(hidden, -np.inf, z)
    return {
        "logits": trial.tensor(z),
        "temperature": trial.draw(choice(1.0, 0.5, 2, 0.7, 1.5, 0.125, 5.0, 0.01, 100.0)),
    }


def _ordinary(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian",)))
    return {"logits": trial.tensor(kind.array(2, trial.draw(sizes(2)))), "temperature": 1.5}


def _bulk(trial: Trial) -> Arguments:
    z = 2.0 * trial.draw(values(("gaussian", "one-signed", "ties"))).array(*bulk_shape(trial))
    return {"logits": trial.tensor(z), "temperature": trial.draw(choice(1.0, 0.7, 2.0))}


def _long(trial: Trial) -> Arguments:
    a = draw_temperature(trial)
    return {**a, "logits": loud(trial, a["logits"])}


def _refusals(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    yield InvalidCall("no class", {**good, "logits": good["logits"][..., :0]}, ("logits",))
    for temperature in (0.0, math.nan, None, -0.0):
        yield InvalidCall(f"a temperature of {temperature}", {**good, "temperature": temperature}, ("temperature",))


TEMPERATURE_SCALE = operation(
    "temperature_scale",
    sample=draw_temperature,
    sample_basic=_ordinary,
    also=tuple(map(_formula, SOFTMAX.formulas)),
    also_gradients=tuple(map(_vjp, SOFTMAX.vjps[1:])),
    refuses=_refusals,
    sample_accuracy=_bulk,
    sample_large=_long,
    structural_dtypes=("fp32", "bf16"),
)


def _exact(trial: Trial, arguments: Arguments) -> Reference:
    return TEMPERATURE_SCALE.exact(trial, arguments, use_exact_oracle=False)[0]


def _row_sums(x: Observation) -> Observation:
    return Observation(x.value.double().sum(-1), f"{x.expression}.double().sum(-1)")


def _simplex(trial: Trial) -> None:
    arguments = draw_temperature(trial)
    reference, p = _exact(trial, arguments), trial.call(arguments).result
    assert_not_constant(trial, p, reference, "probabilities")
    e = p.expression
    trial.assert_true(bool((p.value >= 0).all()), "a probability is negative or NaN", f"bool(({e} >= 0).all())")
    trial.assert_within_bound(_row_sums(p), total(1.0, reference.bound, -1), "the sum of probabilities")


def _shift(trial: Trial) -> None:
    z, shifted, _ = draw_shifted(trial)
    T = trial.draw(choice(1.0, 0.5, 4.0, 1.5))
    calls = ({"logits": z, "temperature": T}, {"logits": shifted, "temperature": T})
    same(trial, TEMPERATURE_SCALE, *calls, "probabilities of shifted scores")


def _units(trial: Trial) -> None:
    z = trial.tensor(trial.draw(values(("gaussian", "ties", "one-signed", "peaked"))).array(2, trial.draw(widths())))
    tiny = () if trial.dtype_name == "fp16" else (2.0**-40,)  # which fp16 has no numbers for
    T, s = trial.draw(choice(1.0, 0.75, 2.5)), trial.draw(choice(2.0, *tiny, 0.25, 16.0))
    calls = ({"logits": z, "temperature": T}, {"logits": s * z, "temperature": s * T})
    same(trial, TEMPERATURE_SCALE, *calls, "probabilities in other units")


def overtakes(p: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Return max(p_low − p_high, 0), the excess probability of each lower score over a higher one, in float64."""
    return (p.double().gather(-1, low) - p.double().gather(-1, high)).clamp(min=0)


def _order(trial: Trial) -> None:
    n, m = few_rows(trial)
    a = {
        "logits": trial.tensor(trial.draw(values()).array(n, m)),
        "temperature": trial.draw(choice(0.5, 3.0, 1.0, 0.0625, 50.0)),
    }
    reference, p = _exact(trial, a), trial.call(a).result
    assert_not_constant(trial, p, reference, "probabilities")
    inside = bool(((p.value >= 0) & (p.value <= 1)).all())
    said = f"bool((({p.expression} >= 0) & ({p.expression} <= 1)).all())"
    trial.assert_true(inside, "a probability is outside [0, 1]", said)
    order = np.argsort(a["logits"].double().numpy(), axis=-1)
    low, high = order[:, :-1], order[:, 1:]
    bound = np.take_along_axis(reference.bound, low, -1) + np.take_along_axis(reference.bound, high, -1)
    observed = trial.observe(overtakes, p, *(constant(torch.as_tensor(x.copy())) for x in (low, high)))
    trial.assert_within_bound(
        observed, Reference(np.zeros(bound.shape), bound, scale=1.0, constant=True), "order of probabilities"
    )


def _conservation(trial: Trial) -> None:
    arguments = draw_temperature(trial)
    cotangent = draw_cotangent(trial, tuple(arguments["logits"].shape), expanded=False)
    gradient = trial.call(arguments, wrt=("logits",), cotangent=cotangent).gradient("logits")
    reference = TEMPERATURE_SCALE.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)["logits"]
    assert_not_constant(trial, gradient, reference, "gradient")
    law = total(0.0, reference.bound, -1)
    size = float(np.abs(reference.exact).sum(-1).max(initial=0.0))
    trial.assert_within_bound(
        _row_sums(gradient), Reference(law.exact, law.bound, scale=size, constant=True), "sum of the gradient"
    )


def _limit(trial: Trial, shares: np.ndarray) -> Reference:
    """Return the reference of probabilities known up to rounding, of themselves or of their logarithms.

    A probability of 0 may be the smallest subnormal number instead.
    """
    xp = trial.xp
    exact, bound = xp.judgeable(xp.asarray(shares))
    by_log = xp.judgeable(xp.exp(xp.log(xp.asarray(np.where(shares > 0, shares, 1.0)))))[1]
    bound = np.maximum(bound, np.where(shares > 0, by_log, 0.0))
    return Reference(exact, bound + trial.format.smallest_subnormal, scale=1.0, constant=True)


def _shares(z: np.ndarray) -> np.ndarray:
    """Return the uniform distribution over the largest scores of each row."""
    highest = z == z.max(-1, keepdims=True)
    return np.asarray(highest / highest.sum(-1, keepdims=True))


def _cold(trial: Trial) -> None:
    n, m = few_rows(trial)
    kind = trial.draw(values())
    z = kind.rng.integers(-3, 4, (n, m)).astype(np.float64)
    T = trial.draw(choice(1e-6, 1e-40, 1e-300, 5e-324, 1e-10))
    p = trial.call({"logits": trial.tensor(z), "temperature": T}).result
    trial.assert_within_bound(p, _limit(trial, _shares(z)), "probabilities near temperature 0")


def _hot(trial: Trial) -> None:
    m = trial.draw(widths())
    z = trial.draw(values(("gaussian", "integers", "peaked"))).array(2, m)
    T = trial.draw(choice(2.0**40, 1e30, 2.0**60))
    p = trial.call({"logits": trial.tensor(z), "temperature": T}).result
    near = _limit(trial, np.full((2, m), 1 / m))
    # e^{−d/T} differs from 1 by at most d/T, and so does each share from 1/m.
    spread = float((z.max(-1) - z.min(-1)).max()) / T * 1.01
    law = Reference(near.exact, near.bound + 2 * spread, scale=1.0, constant=True)
    trial.assert_within_bound(p, law, "probabilities at great heat")


def _range(trial: Trial) -> None:
    n, m = trial.draw(sizes(1, 3)), trial.draw(sizes(2, 5))
    rng = trial.draw(values()).rng
    top = {"fp16": 2.0**14, "bf16": 2.0**100, "fp32": 2.0**100}.get(trial.dtype_name, 2.0**900)
    level = top * rng.choice([1.0, -1.0, 0.0])
    z = level + top * rng.integers(-4, 5, (n, m)) / 8
    T = trial.draw(choice(1.0, 0.5))
    if trial.draw(choice(True, False)):  # scores far apart for this temperature: the highest share everything
        p = trial.call({"logits": trial.tensor(z), "temperature": T}).result
        trial.assert_within_bound(p, _limit(trial, _shares(z)), "probabilities of huge scores")
        return
    judge_with_gradients(trial, TEMPERATURE_SCALE, {"logits": trial.tensor(z), "temperature": T * top / 4})
    trial.effective.append(True)


_LAWS: dict[str, Any] = {
    "simplex": _simplex,
    "shift": _shift,
    "units": _units,
    "order": _order,
    "hot": _hot,
}


CHECKS = (
    *(check(f"temperature_scale.{name}", body, dtypes=("fp32", "fp16")) for name, body in _LAWS.items()),
    check("temperature_scale.conservation", _conservation, dtypes=("fp64", "fp32")),
    check("temperature_scale.cold", _cold),
    check("temperature_scale.range", _range),
)
