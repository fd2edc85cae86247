"""Accuracy in half precision, pooled over a row: a bound grants every rounding its worst, a mean does not.

Errors are counted in units of their bounds. In units of the values one example in which they cancel, and whose errors
are as large by chance as they are, would decide for the whole row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from veriformer.verify.contract import dtypes
from veriformer.verify.judging.judge import Floats, Reference, Tally, Violation
from veriformer.verify.judging.operation import Operation
from veriformer.verify.judging.trial import Trial, array
from veriformer.verify.laws.family import over
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.strategies import values

LIMIT = 3.0
"""How many times the error of the plain formula is too much.

The plain formula rounds every operation to the dtype and sums wide; of algebraically equal forms the worst counts.
"""


def _accuracy(operation: Operation, trial: Trial) -> None:
    assert operation.bulk is not None
    arguments = operation.bulk(trial)
    references = operation.exact(trial, arguments, sharp=False)
    names = operation.differentiable(arguments)
    cotangent = trial.tensor(trial.draw(values(("gaussian", "one-signed"))).array(*references[0].exact.shape))
    outcome = trial.call(arguments, wrt=names, cotangent=cotangent)
    gradients = operation.exact_gradients(trial, arguments, cotangent, sharp=False)
    lifted, g = operation.lift(trial, arguments, trial.plain), trial.plain.asarray(array(cotangent))
    plain = [formula(trial.plain, lifted)[0].value for formula in operation.formulas]
    backward = [vjp(trial.plain, lifted, g) for vjp in operation.vjps]
    _note(trial, "result", array(outcome.result.value), references[0], plain)
    for name in outcome.gradients:
        found = [gradient[name].value for gradient in backward]
        _note(trial, f"gradient of {name}", array(outcome.gradients[name]), gradients[name], found)


def _note(trial: Trial, quantity: str, observed: Floats, reference: Reference, plain: Sequence[Floats]) -> None:
    """Keep the mean squared errors, in units of their bounds: of the target, and of the worst admitted form."""
    exact, bound = reference.exact, reference.bound
    bounded = np.isfinite(bound) & (bound > 0)
    if not bounded.any():
        return
    errors = ((x - exact)[bounded] / bound[bounded] for x in (observed, *plain))
    candidate, *forms = (float(np.square(error).mean()) for error in errors)
    trial.tally.squared_errors.setdefault(quantity, []).append((candidate, max(forms)))
    trial.effective.append(True)


def pooled(tally: Tally) -> None:
    """Raise Violation where the errors of a row are together more than LIMIT times those of the plain formula."""
    for quantity, pairs in tally.squared_errors.items():
        candidate, plain = (math.fsum(pair[i] for pair in pairs) for i in (0, 1))
        ratio = math.sqrt(candidate / plain) if plain else math.inf if candidate else 0.0
        tally.note(ratio / LIMIT)
        if not ratio <= LIMIT:
            raise Violation(
                f"{quantity}: root mean square error {math.sqrt(candidate / len(pairs)):.3g} of the bound over "
                f"{len(pairs)} examples, {ratio:.3g} times that of the plain formula (limit {LIMIT:g})"
            )


BULKY = tuple(operation for operation in OPERATIONS if operation.bulk is not None)
"""The operations whose rounding errors are pooled."""


CHECKS = over(BULKY, "accuracy", _accuracy, dtypes=dtypes.HALVES, effort=0.65, finish=pooled)
