"""Accuracy in half precision, by the mean and not by the worst: a bound grants every rounding its worst.

The plain formula rounds every operation to the dtype and sums wide; of algebraically equal forms the worst counts, and
a rounding of the exact values at least, and what fp32 itself may be off by. By example, the mean square error of the
target is a multiple of theirs. How large it may be in any one example, and in all of a row together, was measured over
the correct implementations (``accuracy_limits``). Besides, errors may not lean one way (``bias``).

Within an example, errors are counted in units of what bounds them: in units of the values, entries in which errors
cancel would decide. In a half itself a sum over some hundred entries has no bound, but it has one in fp32, which is
taken as many times as large as a half's roundings are. Examples are compared by their multiples alone: in units of
bounds, which grow faster with the length of a sum than its errors do, short sums would decide.

A mean square is dominated by the noise of rounding. What is left of signed errors when they are averaged is not: a
formula that is slightly another one is off in one direction wherever its input is of one sign and size. Signed errors
are averaged over inputs that are about as large, and counted from the exact value rounded to the dtype, since rounding
alone can lean one way: near 3 every value of GELU rounds up to its argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from veriformer.spec.arithmetic import FORMATS, Float, Format
from veriformer.verify.contract import dtypes
from veriformer.verify.families.accuracy_limits import by_chance, measured
from veriformer.verify.judging import students_t
from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.judge import (
    Floats,
    Indices,
    Reference,
    RunStatistics,
    SignedErrors,
    SquaredError,
    Violation,
)
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import check_parts
from veriformer.verify.laws.family import is_required, over
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.strategies import values

_FINE = "fp32"
"""Format whose bounds are scaled up to the roundings of a half."""

_MANY = 64
"""Number of entries from which an example counts in full."""

PER_OCTAVE = 2
"""Number of bins of inputs per octave, on either side of zero."""

ERROR_RATE = 1e-9
"""Probability that chance exceeds its share of the explained error."""

LEAST_INPUTS = 24
"""Minimum number of distinct inputs in a bin."""


def _accuracy(operation: OpInfo, trial: Trial) -> None:
    assert operation.sample_accuracy is not None
    arguments, plain = operation.sample_accuracy(trial), trial.plain
    trial.judge_by(_FINE)
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    names = operation.differentiable(arguments)
    if not operation.vjps:
        _note_parts(operation, trial, plain, arguments, references)
        return
    cotangent = trial.tensor(trial.draw(values(("gaussian", "one-signed"))).array(*references[0].exact.shape))
    outcome = trial.call(arguments, wrt=names, cotangent=cotangent)
    list(check_parts(trial, operation, arguments, outcome, references))
    gradients = operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)
    lifted, g = operation.lift(trial, arguments, plain), plain.asarray(array(cotangent))
    forms = [value[0].value for formula in operation.formulas if (value := formula(plain, lifted))]
    backward = [gradient for vjp in operation.vjps if (gradient := vjp(plain, lifted, g))]
    inputs = {tuple(array(arguments[name]).shape): array(arguments[name]) for name in reversed(names)}
    note = partial(_note, trial, plain.format, inputs=inputs, separate=operation.separate)
    note("result", array(outcome.result.value), references[0], forms)
    for name in outcome.gradients:
        found = [gradient[name].value for gradient in backward]
        note(f"gradient of {name}", array(outcome.gradients[name]), gradients[name], found)


def _note_parts(
    operation: OpInfo, trial: Trial, plain: Float, arguments: Arguments, references: Sequence[Reference]
) -> None:
    """Record the errors of all parts of a result together."""
    outcome = trial.call(arguments)
    parts = [array(part.value).ravel() for part, *_ in check_parts(trial, operation, arguments, outcome, references)]
    lifted = operation.lift(trial, arguments, plain)
    forms = [np.concatenate([x.value.ravel() for x in formula(plain, lifted)]) for formula in operation.formulas]
    whole = Reference(*(np.concatenate([getattr(r, name).ravel() for r in references]) for name in ("exact", "bound")))
    _note(trial, plain.format, "result", np.concatenate(parts), whole, forms, {})


def _note(
    trial: Trial,
    form: Format,
    quantity: str,
    observed: Floats,
    reference: Reference,
    plain: Sequence[Floats],
    inputs: Mapping[tuple[int, ...], Floats],
    separate: Sequence[str] = (),
) -> None:
    """Record the mean square error as a multiple of the explained error, and the signed errors in units of their
    bounds.

    form: the half in which results are. reference: with the bounds of fp32.

    inputs: by shape, what the results of that shape are sorted by; of another shape, they are by their exact values.
    separate: the quantities no two entries of which share a rounding.
    """
    exact, size = reference.exact, np.abs(reference.exact)
    bounded = np.isfinite(reference.bound) & (reference.bound > 0) & (size <= form.max / 2)
    if not bounded.any():
        return
    bound = form.unit_roundoff / FORMATS[_FINE].unit_roundoff * reference.bound + form.smallest_subnormal
    of_rounding = np.maximum(form.unit_roundoff * size, form.smallest_subnormal / 2) / math.sqrt(3.0)
    errors = ((x[bounded] / bound[bounded]) for x in (observed - exact, of_rounding, *(y - exact for y in plain)))
    candidate, *explaining = (float(np.square(error).mean()) for error in errors)
    of_fine = (
        FORMATS[_FINE].unit_roundoff / form.unit_roundoff
    ) ** 2  # what is as exact as fp32 lost nothing to a half
    multiple = SquaredError(candidate / max(*explaining, of_fine), int(bounded.sum()))
    trial.statistics.squared_errors.setdefault(quantity, []).append(multiple)
    trial.effective.append(True)
    rounded = form.round(exact[bounded])
    signed = [(x[bounded] - rounded) / bound[bounded] for x in (observed, *plain)]
    sorted_by = inputs.get(exact.shape, exact)[bounded]
    signed_errors = SignedErrors(sorted_by, signed[0], tuple(signed[1:]), quantity in separate)
    trial.statistics.signed_errors.setdefault(quantity, []).append(signed_errors)


@dataclass(frozen=True)
class Summary:
    """Errors of one quantity over the examples of a row.

    together: the root mean square over the examples, those of few entries weighted less; alone: the largest of one
    example, divided by what chance explains of so few entries. Both are multiples of the explained error. leaning: the
    bias.
    """

    quantity: str
    together: float
    alone: float
    leaning: float
    examples: int


def summed(statistics: RunStatistics) -> Iterator[Summary]:
    """Yield the errors of a row by quantity."""
    for quantity, found in statistics.squared_errors.items():
        weights = [min(one.entries, _MANY) for one in found]
        together = math.fsum(w * one.multiple for w, one in zip(weights, found, strict=True)) / sum(weights)
        alone = max(math.sqrt(one.multiple) / by_chance(one.entries) for one in found)
        leaning = bias(statistics.signed_errors[quantity])
        yield Summary(quantity, math.sqrt(together), alone, leaning, len(found))


def pooled(operation: str, statistics: RunStatistics) -> None:
    """Raise Violation where errors, of an example or of a row, are larger, or lean further one way, than admitted."""
    for found in summed(statistics):
        quantity, known, over = found.quantity, measured(operation, found.quantity), f"{found.examples} examples"
        limit = known.limit(found.examples)
        statistics.note(max(found.together / limit, found.alone / known.alone, found.leaning / known.leaning))
        if not found.together <= limit:
            raise Violation(
                f"{quantity}: root mean square error over {over} {found.together:.3g} times that of the plain formula "
                f"(limit {limit:.3g})",
                about=f"{quantity}: root mean square error",
            )
        if not found.alone <= known.alone:
            raise Violation(
                f"{quantity}: root mean square error of one of {over} {found.alone:.3g} times what chance and the "
                f"plain formula explain (limit {known.alone:.3g})",
                about=f"{quantity}: root mean square error",
            )
        if not found.leaning <= known.leaning:
            raise Violation(
                f"{quantity}: the mean of signed errors over {over}, where inputs are about as large, is "
                f"{found.leaning:.3g} times what chance and the plain formula explain (limit {known.leaning:.3g})",
                about=f"{quantity}: mean of signed errors",
            )


BULKY = tuple(operation for operation in OPERATIONS if is_required(operation, "accuracy"))
"""Operations whose rounding errors are pooled."""

CHECKS = tuple(
    check
    for operation in BULKY
    for check in over(
        [operation],
        "accuracy",
        _accuracy,
        dtypes=dtypes.HALVES,
        effort=len(dtypes.HALVES) / len([name for name in operation.dtypes if name in dtypes.HALVES]),
        finish=partial(pooled, operation.name),
    )
)


def bias(examples: Sequence[SignedErrors]) -> float:
    """Return the largest mean error of a bin, as a multiple of what the admitted forms and chance explain.

    Chance explains a multiple of the mean's standard error, by Student's t and the error rate shared among the bins; a
    form explains its own mean, for its roundings may lean one way, in proportion to how much of its noise the target
    has: who works in wider arithmetic has neither. Equal inputs round alike in what works entry by entry, so that as
    many errors are independent as inputs are different. Elsewhere the entries of an example may all come of one rounded
    value, and only examples are independent: how far their sums scatter says how uncertain the mean is.
    """
    inputs = np.concatenate([one.inputs for one in examples])
    observed = np.concatenate([one.observed for one in examples])
    forms = [np.concatenate(parts) for parts in zip(*(one.forms for one in examples), strict=True)]
    shared = not all(one.separate for one in examples)
    of = np.repeat(np.arange(len(examples)), [len(one.inputs) for one in examples]) if shared else None
    members = _members(_bins(inputs))
    found = (
        _of_bin(inputs[b], observed[b], [f[b] for f in forms], len(members), None if of is None else of[b])
        for b in members
    )
    return max(found, default=0.0)


def _bins(inputs: Floats) -> Floats:
    """Return the bin number of every input; 0 for zero."""
    with np.errstate(divide="ignore", invalid="ignore"):  # zeros have no octave
        numbers = np.sign(inputs) * (1e4 + np.floor(np.log2(np.abs(inputs)) * PER_OCTAVE))
    return np.where((inputs == 0) | ~np.isfinite(inputs), 0.0, numbers)


def _members(bins: Floats) -> list[np.ndarray]:
    return [np.flatnonzero(bins == one) for one in np.unique(bins) if one]


def _of_bin(inputs: Floats, observed: Floats, forms: Sequence[Floats], bins: int, examples: Indices | None) -> float:
    different = independent = len(np.unique(inputs))
    if independent < LEAST_INPUTS:
        return 0.0
    noise, mean = float(observed.std()), abs(float(observed.mean()))
    leaning = max((abs(float(f.mean())) * min(1.0, noise / f.std()) for f in forms if f.std()), default=0.0)
    error = noise / math.sqrt(different)
    if examples is not None:
        sums = np.bincount(examples, weights=observed - observed.mean())
        independent = min(different, len(np.unique(examples)))
        error = max(error, math.sqrt(float(np.square(sums).sum())) / len(observed))
    if independent < 2:
        return 0.0
    t = students_t.quantile(independent - 1, 1 - ERROR_RATE / (2 * bins))
    explained = leaning + t * error * math.sqrt(independent / (independent - 1))
    return mean / explained if explained else np.inf if mean else 0.0
