"""Accuracy in half precision, pooled over a row: a bound grants every rounding its worst, a mean does not.

The plain formula rounds every operation to the dtype and sums wide; of algebraically equal forms the worst counts. How
many times its error is too much was measured over the correct implementations (``accuracy_limits``). Besides, errors
may not lean one way (``bias``).

Errors are counted in units of their bounds. In units of the values one example in which they cancel, and whose errors
are as large by chance as they are, would decide for the whole row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from veriformer.verify.contract import dtypes
from veriformer.verify.families.accuracy_limits import measured
from veriformer.verify.families.bias import bias
from veriformer.verify.judging.judge import Floats, Reference, RunStatistics, SignedErrors, Violation
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial, array
from veriformer.verify.laws.family import over
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.strategies import values


def _accuracy(operation: OpInfo, trial: Trial) -> None:
    assert operation.sample_accuracy is not None
    arguments = operation.sample_accuracy(trial)
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    names = operation.differentiable(arguments)
    cotangent = trial.tensor(trial.draw(values(("gaussian", "one-signed"))).array(*references[0].exact.shape))
    outcome = trial.call(arguments, wrt=names, cotangent=cotangent)
    gradients = operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)
    lifted, g = operation.lift(trial, arguments, trial.plain), trial.plain.asarray(array(cotangent))
    plain = [value[0].value for formula in operation.formulas if (value := formula(trial.plain, lifted))]
    backward = [gradient for vjp in operation.vjps if (gradient := vjp(trial.plain, lifted, g))]
    inputs = {tuple(array(arguments[name]).shape): array(arguments[name]) for name in reversed(names)}
    _note(trial, "result", array(outcome.result.value), references[0], plain, inputs)
    for name in outcome.gradients:
        found = [gradient[name].value for gradient in backward]
        _note(trial, f"gradient of {name}", array(outcome.gradients[name]), gradients[name], found, inputs)


def _note(
    trial: Trial,
    quantity: str,
    observed: Floats,
    reference: Reference,
    plain: Sequence[Floats],
    inputs: Mapping[tuple[int, ...], Floats],
) -> None:
    """Keep the errors, in units of their bounds: of the target and of the admitted forms, squared of the worst.

    inputs: by shape, what the results of that shape are sorted by; of another shape, they are by their exact values.
    """
    exact, bound = reference.exact, reference.bound
    bounded = np.isfinite(bound) & (bound > 0)
    if not bounded.any():
        return
    errors = ((x - exact)[bounded] / bound[bounded] for x in (observed, *plain))
    candidate, *forms = (float(np.square(error).mean()) for error in errors)
    trial.statistics.squared_errors.setdefault(quantity, []).append((candidate, max(forms)))
    trial.effective.append(True)
    rounded = trial.format.round(exact[bounded])
    signed = [(x[bounded] - rounded) / bound[bounded] for x in (observed, *plain)]
    sorted_by = inputs.get(exact.shape, exact)[bounded]
    signed_errors = SignedErrors(sorted_by, signed[0], tuple(signed[1:]))
    trial.statistics.signed_errors.setdefault(quantity, []).append(signed_errors)


def summed(statistics: RunStatistics) -> Iterator[tuple[str, float, float, int]]:
    """By quantity: the root mean square error over that of the plain formula, the bias, and how many examples."""
    for quantity, pairs in statistics.squared_errors.items():
        candidate, plain = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
        ratio = math.sqrt(candidate / plain) if plain else math.inf if candidate else 0.0
        yield quantity, ratio, bias(statistics.signed_errors[quantity]), len(pairs)


def pooled(operation: str, statistics: RunStatistics) -> None:
    """Raise Violation where the errors of a row are together larger, or lean further one way, than those admitted."""
    for quantity, error, leaning, examples in summed(statistics):
        known = measured(operation, quantity)
        limit = known.limit(examples)
        statistics.note(max(error / limit, leaning / known.bias))
        if not error <= limit:
            raise Violation(
                f"{quantity}: root mean square error over {examples} examples {error:.3g} times that of the plain "
                f"formula (limit {limit:.3g})",
                about=f"{quantity}: root mean square error",
            )
        if not leaning <= known.bias:
            raise Violation(
                f"{quantity}: the mean of signed errors over {examples} examples, where inputs are about as large, is "
                f"{leaning:.3g} times what chance and the plain formula explain (limit {known.bias:.3g})",
                about=f"{quantity}: mean of signed errors",
            )


BULKY = tuple(operation for operation in OPERATIONS if operation.sample_accuracy is not None)
"""The operations whose rounding errors are pooled."""


CHECKS = tuple(
    check
    for operation in BULKY
    for check in over(
        [operation],
        "accuracy",
        _accuracy,
        dtypes=dtypes.HALVES,
        effort=0.65,
        finish=partial(pooled, operation.name),
    )
)
