"""Laws of layer normalisation and of root-mean-square normalisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees, gradients_agree
from veriformer.verify.checks.equation import draw_cotangent, judge_with_gradients
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import alive, constant, equal, finite, scaled, stays_finite, total
from veriformer.verify.judge import Reference
from veriformer.verify.operation import Operation
from veriformer.verify.operations import LAYER_NORM, RMS_NORM
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.trial import Arguments, Trial

_KINDS = ("gaussian", "one-signed", "ties", "peaked", "duplicates", "sparse")


def _exact(trial: Trial, operation: Operation, arguments: Arguments) -> Reference:
    return operation.exact(trial, arguments, sharp=False)[0]


def _rows(trial: Trial, *, exact_step: float | None = None) -> torch.Tensor:
    """Rows with some spread; with a step, of multiples of it, so that shifts and powers of two are exact."""
    n, d = trial.draw(sizes(1, 4)), trial.draw(sizes(3, 8))
    kind = trial.draw(values(_KINDS))
    x = kind.array(n, d) if exact_step is None else np.float64(exact_step) * kind.rng.integers(-8, 9, (n, d))
    x[:, 0] += np.where(x[:, 0] == x[:, 1], 1.0, 0.0)
    return trial.tensor(x)


def _eps(trial: Trial) -> float:
    eps: float = trial.draw(choice(1e-5, 0.01, 1e-12, 1.0))
    return eps


def row_sums(y: torch.Tensor) -> torch.Tensor:
    """Sums of rows in float64."""
    return y.double().sum(-1)


def row_squares(y: torch.Tensor) -> torch.Tensor:
    """Mean squares of rows in float64."""
    return y.double().square().mean(-1)


def _mean_square(reference: Reference) -> Reference:
    """What the mean square of judged rows may be: |(y + e)² − y²| ≤ (2 |y| + b) b."""
    slack = ((2.0 * np.abs(reference.exact) + reference.bound) * reference.bound).mean(-1)
    return Reference(np.square(reference.exact).mean(-1), slack * (1 + 2.0**-40) + 2.0**-50, constant=True)


def _moments(trial: Trial) -> None:
    arguments: dict[str, Any] = {"x": _rows(trial), "eps": _eps(trial)}
    reference = _exact(trial, LAYER_NORM, arguments)
    y = trial.call(arguments).result
    trial.judge(trial.observe(row_sums, y), total(0.0, reference.bound, -1), "the sum of a row")
    x = arguments["x"].double().numpy()
    variance = x.var(-1)
    law = _mean_square(reference)
    of_law = Reference(variance / (variance + arguments["eps"]), law.bound, scale=1.0, constant=True)
    trial.judge(trial.observe(row_squares, y), of_law, "the variance of a row")


def _shift(trial: Trial) -> None:
    x = _rows(trial, exact_step=0.25)
    shift = trial.draw(choice(4.0, -8.0, 2.0))
    a, b = {"x": x}, {"x": x + shift}
    of_a, of_b = (_exact(trial, LAYER_NORM, one) for one in (a, b))
    equal(trial, trial.call(a).result, trial.call(b).result, of_a, of_b, "layer norm of shifted rows")


def _scale(operation: Operation, trial: Trial) -> None:
    x, eps = _rows(trial, exact_step=0.25), trial.draw(choice(2.0**-6, 0.0, 1.0))
    factor = trial.draw(choice(0.5, 4.0, 0.125))
    a, b = {"x": x, "eps": eps}, {"x": factor * x, "eps": factor**2 * eps}
    of_a, of_b = (_exact(trial, operation, one) for one in (a, b))
    results = trial.call(a).result, trial.call(b).result
    equal(trial, *results, of_a, of_b, "rows and eps scaled by a number and its square")


def mirrored(y: torch.Tensor) -> torch.Tensor:
    """−y."""
    return -y


def _odd(operation: Operation, trial: Trial) -> None:
    x, eps = _rows(trial), _eps(trial)
    reference = _exact(trial, operation, {"x": x, "eps": eps})
    a, b = (trial.call({"x": one, "eps": eps}) for one in (x, -x))
    agrees(trial, operation, {"x": x, "eps": eps}, a, [reference])
    there = Reference(-reference.exact, reference.bound)
    equal(trial, trial.observe(mirrored, a.result), b.result, there, there, "rows of the opposite sign")


def affine(y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """weight · y + bias in float64."""
    return weight.double() * y.double() + bias.double()


def _affine(operation: Operation, trial: Trial) -> None:
    x, d = _rows(trial), 0
    d = x.shape[-1]
    weight = trial.tensor(trial.draw(values()).array(d))
    options: dict[str, Any] = {"weight": weight}
    bias = torch.zeros_like(weight)
    if operation is LAYER_NORM:
        which = trial.draw(choice("both", "bias", "weight"))
        drawn = trial.tensor(trial.draw(values()).array(d))
        options = {"both": {"weight": weight, "bias": drawn}, "bias": {"bias": drawn}, "weight": options}[which]
        bias = options.get("bias", bias)
        weight = options.get("weight", torch.ones_like(weight))
    plain, full = {"x": x}, {"x": x, **options}
    of_plain, of_full = (_exact(trial, operation, one) for one in (plain, full))
    a, b = (trial.call(one).result for one in (plain, full))
    alive(trial, a, of_plain, "the result without parameters")
    size = np.abs(of_full.exact) + np.abs(bias.double().numpy())
    bound = scaled(of_plain.bound, np.broadcast_to(np.abs(weight.double().numpy()), size.shape))
    law = Reference(of_full.exact, bound * (1 + 2.0**-40) + 2.0**-50 * size)
    equal(trial, trial.observe(affine, a, constant(weight), constant(bias)), b, law, of_full, "weight · y + bias")


def _near_constant(operation: Operation, trial: Trial) -> None:
    """Rows whose spread (or size) is that of √ε, where it matters where ε stands."""
    n, d = trial.draw(sizes(1, 4)), trial.draw(sizes(2, 8))
    eps = trial.draw(choice(None, 1e-5, 1e-6, 1e-3, 0.25))
    root = np.sqrt(eps or (1e-5 if operation is LAYER_NORM else 1e-6))
    kind = trial.draw(values(("integers", "gaussian", "ties", "one-signed", "sparse", "peaked")))
    arguments = {"x": trial.tensor(root * trial.draw(choice(1.0, 0.2, 3.0)) * kind.array(n, d))}
    judge_with_gradients(trial, operation, arguments if eps is None else {**arguments, "eps": eps})


def _constant_rows(trial: Trial) -> None:
    n, d = trial.draw(sizes(1, 3)), trial.draw(choice(4, 2, 1, 8))
    level = trial.draw(choice(0.0, 1.0, -0.5, 64.0))
    rng = trial.draw(values()).rng
    arguments = {
        "x": trial.tensor(np.full((n, d), level)),
        "weight": trial.tensor(rng.standard_normal(d)),
        "bias": trial.tensor(rng.standard_normal(d)),
        "eps": trial.draw(choice(1e-5, 0.01, 1.0)),
    }
    outcome = trial.call(arguments, wrt=("x",), cotangent=trial.tensor(rng.standard_normal((n, d))))
    gradient = outcome.gradient("x")
    finite(trial, gradient, "the gradient at a constant row")
    reference = _exact(trial, LAYER_NORM, arguments)
    trial.judge(outcome.result, reference, "result at constant rows")
    cotangent = trial.calls[-1].cotangent
    assert cotangent is not None
    found = LAYER_NORM.exact_gradients(trial, arguments, cotangent, sharp=False)["x"]
    trial.judge(gradient, found, "gradient at constant rows")


def _conditioning(trial: Trial) -> None:
    """The mean thousands of times the spread: two passes keep half of the digits, one pass none."""
    n, d = trial.draw(sizes(1, 3)), trial.draw(sizes(3, 8))
    digits = trial.format.precision
    level = trial.draw(choice(1.0, -1.0)) * 2.0 ** (digits // 2)
    kind = trial.draw(values(("gaussian", "one-signed", "peaked")))
    arguments = {"x": trial.tensor(level + kind.array(n, d))}
    claimed = trial.claims.convention("layer_norm.variance")
    two_pass = replace(LAYER_NORM, formulas=LAYER_NORM.formulas[:1], vjps=LAYER_NORM.vjps[:1])
    operation = LAYER_NORM if claimed == "one-pass" else two_pass
    cotangent = draw_cotangent(trial, (n, d))
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    agrees(trial, operation, arguments, outcome, operation.exact(trial, arguments, sharp=False))
    gradients_agree(trial, outcome, operation.exact_gradients(trial, arguments, cotangent, sharp=False))
    trial.effective.append(True)


def _range(operation: Operation, trial: Trial) -> None:
    """Sizes whose squares, or sums, leave fp16, though not fp32."""
    n, d = trial.draw(sizes(1, 3)), trial.draw(choice(3, 100, 8, 100))
    kind = trial.draw(values(("one-signed", "gaussian", "one-signed", "peaked")))
    size = trial.draw(choice(2.0**10, 2.0**12, 2.0**-12))
    x = trial.tensor(size * kind.array(n, d))
    arguments = {"x": x, "eps": 0.0 if size < 1 else 1e-6}
    arguments = arguments if bool((x.amax(-1) > x.amin(-1)).all()) else {"x": x, "eps": 1e-6}
    cotangent = draw_cotangent(trial, (n, d))
    outcome = trial.call(arguments, wrt=("x",), cotangent=cotangent)
    references = operation.exact(trial, arguments, sharp=False)
    agrees(trial, operation, arguments, outcome, references)
    stays_finite(trial, outcome.result, references[0], "the result")
    gradient = operation.exact_gradients(trial, arguments, cotangent, sharp=False)["x"]
    stays_finite(trial, outcome.gradient("x"), gradient, "the gradient")


def _unit(trial: Trial) -> None:
    arguments: dict[str, Any] = {"x": _rows(trial), "eps": _eps(trial)}
    law = _mean_square(_exact(trial, RMS_NORM, arguments))
    size = arguments["x"].double().square().mean(-1).numpy()
    of_law = Reference(size / (size + arguments["eps"]), law.bound, scale=1.0, constant=True)
    y = trial.call(arguments).result
    trial.judge(trial.observe(row_squares, y), of_law, "the mean square of a row")


def _on(operation: Operation, body: Any) -> Any:
    return lambda trial: body(operation, trial)


_BOTH = {"scale": _scale, "odd": _odd, "affine": _affine, "near_eps": _near_constant, "range": _range}

CHECKS = (
    check("layer_norm.moments", _moments),
    check("layer_norm.shift", _shift),
    check("layer_norm.constant_rows", _constant_rows),
    check("layer_norm.conditioning", _conditioning, dtypes=("fp64", "fp32"), convention="layer_norm.variance"),
    check("rms_norm.unit", _unit),
    *(check(f"layer_norm.{name}", _on(LAYER_NORM, body)) for name, body in _BOTH.items()),
    *(check(f"rms_norm.{name}", _on(RMS_NORM, body)) for name, body in _BOTH.items()),
)
