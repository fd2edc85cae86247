"""Laws of softmax and log-sum-exp."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees
from veriformer.verify.checks.equation import draw_cotangent
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import alive, between, constant, equal, total
from veriformer.verify.judge import Reference
from veriformer.verify.operations import LOGSUMEXP, SOFTMAX
from veriformer.verify.operations.scores import axis_in, draw_scores
from veriformer.verify.strategies import choice, sizes, values, widths
from veriformer.verify.trial import Observation, Trial, over_float64


def _summed(x: Observation, axis: int) -> Observation:
    return Observation(x.value.double().sum(axis), f"{x.expression}.double().sum({axis})")


def _simplex(trial: Trial) -> None:
    arguments = draw_scores(trial)
    reference = SOFTMAX.exact(trial, arguments, sharp=False)[0]
    p = trial.call(arguments).result
    alive(trial, p, reference, "probabilities")
    e = p.expression
    trial.require(bool((p.value >= 0).all()), "a probability is negative or NaN", f"bool(({e} >= 0).all())")
    axis = axis_in(arguments)
    trial.judge(_summed(p, axis), total(1.0, reference.bound, axis), "the sum of probabilities")


def draw_shifted(trial: Trial) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Scores, the same with a number added to each, and that number; all of them exact in the dtype of the row."""
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    step = trial.draw(choice(0.25, 0.125, 0.5))
    sign = trial.draw(choice(1.0, -1.0))
    c = sign * step * 2.0 ** (trial.format.precision - 1)
    z = step * trial.draw(values()).rng.integers(-20, 21, (n, m))
    return trial.tensor(z), trial.tensor(z + c), c


def _softmax_shift(trial: Trial) -> None:
    z, shifted, _ = draw_shifted(trial)
    a, b = trial.call({"z": z}).result, trial.call({"z": shifted}).result
    of_a, of_b = (SOFTMAX.exact(trial, {"z": x}, sharp=False)[0] for x in (z, shifted))
    equal(trial, a, b, of_a, of_b, "softmax of shifted scores")


def less(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a − b in float64."""
    return a.double() - b.double()


def _logsumexp_shift(trial: Trial) -> None:
    z, shifted, c = draw_shifted(trial)
    a, b = trial.call({"z": z}).result, trial.call({"z": shifted}).result
    of_a, of_b = (LOGSUMEXP.exact(trial, {"z": x}, sharp=False)[0] for x in (z, shifted))
    alive(trial, a, of_a, "log-sum-exp")
    bound = (of_a.bound + of_b.bound) * (1 + 2.0**-50) + 2.0**-50 * abs(c)
    law = Reference(np.full(bound.shape, c), bound, scale=float(np.abs(of_a.exact).max()) + 1.0, constant=True)
    trial.judge(trial.observe(less, b, a), law, "log-sum-exp of shifted scores less that of the scores")


def _jacobian(trial: Trial) -> None:
    arguments = draw_scores(trial)
    cotangent = draw_cotangent(trial, tuple(arguments["z"].shape), expanded=False)
    gradient = trial.call(arguments, wrt=("z",), cotangent=cotangent).gradient("z")
    reference = SOFTMAX.exact_gradients(trial, arguments, cotangent, sharp=False)["z"]
    alive(trial, gradient, reference, "gradient")
    axis = axis_in(arguments)
    law = total(0.0, reference.bound, axis)
    size = float(np.abs(reference.exact).sum(axis).max(initial=0.0))
    trial.judge(
        _summed(gradient, axis), Reference(law.exact, law.bound, scale=size, constant=True), "sum of the gradient"
    )


def gathered(x: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """The entries of the last axis in another order."""
    return x[..., order]


def _permutation(trial: Trial) -> None:
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    kind = trial.draw(values())
    z = trial.tensor(kind.array(n, m))
    order = kind.rng.permutation(m)
    reference = SOFTMAX.exact(trial, {"z": z}, sharp=False)[0]
    a, b = trial.call({"z": z}), trial.call({"z": z[:, order]})
    agrees(trial, SOFTMAX, {"z": z}, a, [reference])
    moved = Reference(reference.exact[:, order], reference.bound[:, order])
    equal(
        trial,
        trial.observe(gathered, a.result, constant(torch.as_tensor(order))),
        b.result,
        moved,
        moved,
        "softmax in another order",
    )


def draw_huge(trial: Trial) -> tuple[torch.Tensor, torch.Tensor, np.ndarray[Any, Any]]:
    """Scores up to near the largest number of the format, one clear maximum a row; what they amount to; the maxima.

    What they amount to: 0 at the maximum, and elsewhere a number so low that e to it is 0 in every format. Times log₂ e
    the scores and their differences stay in range.
    """
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    rng = trial.draw(values()).rng
    top = 2.0 ** trial.draw(choice(13, trial.format.emax - 2))
    lower = rng.choice([-1.0, -0.5, 0.0, 0.5, -np.inf], (n, m)) * top
    peak = np.arange(m) == rng.integers(0, m, (n, 1))
    highest = rng.choice([-1.0, 1.0], (n, 1))  # one row may be far below another
    lower = np.where((highest > 0) | np.isneginf(lower), lower, -1.75 * top)
    z = np.where(peak, highest * top, lower)
    return trial.tensor(z), torch.as_tensor(np.where(peak, 0.0, -4096.0)), highest[:, 0] * top


def _softmax_range(trial: Trial) -> None:
    z, plain, _ = draw_huge(trial)
    cotangent = draw_cotangent(trial, tuple(z.shape))
    outcome = trial.call({"z": z}, wrt=("z",), cotangent=cotangent)
    reference = SOFTMAX.exact(trial, {"z": plain}, sharp=False)[0]
    trial.judge(outcome.result, _granting_one_bit(trial, reference), "softmax of huge scores")
    gradient = SOFTMAX.exact_gradients(trial, {"z": plain}, cotangent, sharp=False)["z"]
    trial.judge(outcome.gradient("z"), _granting_one_bit(trial, gradient), "gradient at huge scores")


def _granting_one_bit(trial: Trial, reference: Reference) -> Reference:
    """An exact 0 stands for a number below every format: its rounding may go up."""
    return Reference(reference.exact, reference.bound + trial.format.smallest_subnormal, scale=1.0, constant=True)


def _logsumexp_range(trial: Trial) -> None:
    z, plain, highest = draw_huge(trial)
    xp = over_float64(trial.dtype_name)
    exact = xp.asarray(highest) + LOGSUMEXP.formulas[0](xp, {"z": xp.asarray(plain.numpy())})[0]
    cotangent = draw_cotangent(trial, tuple(z.shape[:1]))
    outcome = trial.call({"z": z}, wrt=("z",), cotangent=cotangent)
    trial.judge(outcome.result, Reference(*xp.judgeable(exact), constant=True), "log-sum-exp of huge scores")
    gradient = LOGSUMEXP.exact_gradients(trial, {"z": plain}, cotangent, sharp=False)["z"]
    trial.judge(outcome.gradient("z"), _granting_one_bit(trial, gradient), "gradient at huge scores")


def _between(trial: Trial) -> None:
    arguments = draw_scores(trial)
    reference = LOGSUMEXP.exact(trial, arguments, sharp=False)[0]
    result = trial.call(arguments).result
    alive(trial, result, reference, "log-sum-exp")
    z, axis = arguments["z"], axis_in(arguments)
    low = z.double().amax(axis).numpy()
    high = low + np.log(z.shape[axis])
    between(trial, result, low, high, reference.bound, "how far it is outside max and max + log n")


_LAWS: dict[str, Any] = {
    "softmax.simplex": _simplex,
    "softmax.shift": _softmax_shift,
    "softmax.permutation": _permutation,
    "softmax.range": _softmax_range,
    "logsumexp.shift": _logsumexp_shift,
    "logsumexp.between": _between,
    "logsumexp.range": _logsumexp_range,
}

CHECKS = (
    *(check(slug, body) for slug, body in _LAWS.items()),
    check("softmax.jacobian", _jacobian, dtypes=("fp64", "fp32", "fp16")),  # bf16 leaves it little to say
)
