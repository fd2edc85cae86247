"""The laws that both normalisations keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.check import Check
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import assert_not_constant, constant, equal, scale_bound, stays_finite
from veriformer.verify.laws.family import check, on
from veriformer.verify.laws.gradients import draw_cotangent, judge_with_gradients
from veriformer.verify.laws.pairs import exact, same
from veriformer.verify.strategies import choice, sizes, values

_KINDS = ("gaussian", "one-signed", "ties", "peaked", "duplicates", "sparse")


def spread_rows(trial: Trial, *, exact_step: float | None = None) -> torch.Tensor:
    """Draw rows with some spread; with a step, of multiples of it, so that shifts and powers of two are exact."""
    large = trial.sizes({"rows": (1, 2000), "width": (3, 5000)}, lambda s: s["rows"] * s["width"])
    n, d = (large["rows"], large["width"]) if large else (trial.draw(sizes(1, 4)), trial.draw(sizes(3, 8)))
    kind = trial.draw(values(_KINDS))
    x = kind.array(n, d) if exact_step is None else np.float64(exact_step) * kind.rng.integers(-8, 9, (n, d))
    x[:, 0] += np.where(x[:, 0] == x[:, 1], 1.0, 0.0)
    return trial.tensor(x)


def draw_eps(trial: Trial) -> float:
    """Draw an ``eps`` that is not 0."""
    eps: float = trial.draw(choice(1e-5, 0.01, 1e-12, 1.0))
    return eps


def row_squares(y: torch.Tensor) -> torch.Tensor:
    """Return mean squares of rows in float64."""
    return y.double().square().mean(-1)


def mean_square_law(reference: Reference) -> Reference:
    """Return the reference of the mean square of judged rows y, with |(y + e)² − y²| ≤ (2 |y| + b) b."""
    slack = ((2.0 * np.abs(reference.exact) + reference.bound) * reference.bound).mean(-1)
    return Reference(np.square(reference.exact).mean(-1), slack * (1 + 2.0**-40) + 2.0**-50, constant=True)


def _scale(operation: OpInfo, trial: Trial) -> None:
    x, eps = spread_rows(trial, exact_step=0.25), trial.draw(choice(2.0**-6, 0.0, 1.0))
    factor = trial.draw(choice(0.5, 4.0, 0.125))
    a, b = {"x": x, "eps": eps}, {"x": factor * x, "eps": factor**2 * eps}
    same(trial, operation, a, b, "rows and eps scaled by a number and its square")


def mirror(y: torch.Tensor) -> torch.Tensor:
    """Return −y."""
    return -y


def _odd(operation: OpInfo, trial: Trial) -> None:
    x, eps = spread_rows(trial), draw_eps(trial)
    reference = exact(trial, operation, {"x": x, "eps": eps})
    a, b = (trial.call({"x": one, "eps": eps}) for one in (x, -x))
    agrees(trial, operation, {"x": x, "eps": eps}, a, [reference])
    there = Reference(-reference.exact, reference.bound)
    equal(trial, trial.observe(mirror, a.result), b.result, there, there, "rows of the opposite sign")


def affine(y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return weight · y + bias in float64."""
    return weight.double() * y.double() + bias.double()


def _affine(operation: OpInfo, trial: Trial) -> None:
    x, d = spread_rows(trial), 0
    d = x.shape[-1]
    weight = trial.given("weight", trial.draw(values()).array(d))
    options: dict[str, Any] = {"weight": weight}
    bias = torch.zeros_like(weight)
    if operation.name == "layer_norm":
        which = trial.draw(choice("both", "bias", "weight"))
        drawn = trial.tensor(trial.draw(values()).array(d))
        options = {"both": {"weight": weight, "bias": drawn}, "bias": {"bias": drawn}, "weight": options}[which]
        bias = options.get("bias", bias)
        weight = options.get("weight", torch.ones_like(weight))
    plain, full = {"x": x}, {"x": x, **options}
    of_plain, of_full = (exact(trial, operation, one) for one in (plain, full))
    a, b = (trial.call(one).result for one in (plain, full))
    assert_not_constant(trial, a, of_plain, "the result without parameters")
    size = np.abs(of_full.exact) + np.abs(bias.double().numpy())
    bound = scale_bound(of_plain.bound, np.broadcast_to(np.abs(weight.double().numpy()), size.shape))
    law = Reference(of_full.exact, bound * (1 + 2.0**-40) + 2.0**-50 * size)
    equal(trial, trial.observe(affine, a, constant(weight), constant(bias)), b, law, of_full, "weight · y + bias")


def _near_constant(operation: OpInfo, trial: Trial) -> None:
    """Check rows whose spread (or size) is near √ε, where the place of ε matters."""
    n, d = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 8))
    eps = trial.draw(choice(None, 1e-5, 1e-6, 1e-3, 0.25))
    root = np.sqrt(eps or (1e-5 if operation.name == "layer_norm" else 1e-6))
    kind = trial.draw(values(("integers", "gaussian", "ties", "one-signed", "sparse", "peaked")))
    arguments = {"x": trial.tensor(root * trial.draw(choice(1.0, 0.2, 3.0)) * kind.array(n, d))}
    judge_with_gradients(trial, operation, arguments if eps is None else {**arguments, "eps": eps})


def _range(operation: OpInfo, trial: Trial) -> None:
    """Check sizes whose squares, or sums, leave fp16, though not fp32."""
    n, d = trial.draw(sizes(1, 3)), trial.draw(choice(3, 100, 8, 100))
    kind = trial.draw(values(("one-signed", "gaussian", "one-signed", "peaked")))
    size = trial.draw(choice(2.0**10, 2.0**12, 2.0**-12))
    x = trial.tensor(size * kind.array(n, d))
    arguments = {"x": x, "eps": 0.0 if size < 1 else 1e-6}
    arguments = arguments if bool((x.amax(-1) > x.amin(-1)).all()) else {"x": x, "eps": 1e-6}
    cotangent = draw_cotangent(trial, (n, d))
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    agrees(trial, operation, arguments, outcome, references)
    stays_finite(trial, outcome.result, references[0], "the result")
    gradient = operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)["x"]
    stays_finite(trial, outcome.gradient("x"), gradient, "the gradient")


_BOTH = {"scale": _scale, "odd": _odd, "affine": _affine, "near_eps": _near_constant, "range": _range}


def laws_of_norms(operation: OpInfo) -> tuple[Check, ...]:
    """Return the laws that both normalisations keep."""
    return tuple(check(f"{operation.name}.{name}", on(operation, body)) for name, body in _BOTH.items())
