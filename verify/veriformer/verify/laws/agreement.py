"""Agreement of a result with its reference: promised form, and values within the bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial


def has_form(
    trial: Trial,
    observed: Observation,
    shape: tuple[int, ...],
    dtype: torch.dtype,
    what: str = "the result",
    *,
    any_floating: bool | None = None,
) -> None:
    """Raise Violation unless a tensor has this shape and dtype, on the device of the row.

    any_floating: whether any floating dtype serves for a floating one; so it is with operations whose dtype is advice.
    """
    x = observed.value
    any_floating = trial.operation in dtypes.CHOSEN if any_floating is None else any_floating
    if any_floating and dtype.is_floating_point and x.is_floating_point():
        dtype = x.dtype
    place = "cpu" if trial.operation in dtypes.DEFAULTED else torch.device(trial.device).type
    wanted = f"shape {shape}, {dtype}, on {place}"
    found = f"shape {tuple(x.shape)}, {x.dtype}, on {x.device.type}"
    wrong = "shape" if tuple(x.shape) != shape else "dtype" if x.dtype != dtype else "device"
    e = observed.expression
    trial.assert_true(
        wanted == found,
        f"{what} has {found}; expected {wanted}",
        f"tuple({e}.shape) == {shape!r} and {e}.dtype == {dtype} and {e}.device.type == {place!r}",
        about=wrong,
    )


def agrees(
    trial: Trial, operation: OpInfo, arguments: Arguments, outcome: Outcome, references: list[Reference]
) -> None:
    """Raise Violation unless every part of the result has the promised dtype and lies within its bound."""
    for observed, reference, what in check_parts(trial, operation, arguments, outcome, references):
        trial.assert_within_bound(observed, reference, what)


def check_parts(
    trial: Trial, operation: OpInfo, arguments: Arguments, outcome: Outcome, references: Sequence[Reference]
) -> Iterator[tuple[Observation, Reference, str]]:
    """Yield every part of the result with its reference and its name. Raises Violation at one of another form than
    promised.

    The form alone tells no right values from wrong ones.
    """
    for part, (observed, reference) in enumerate(zip(operation.parts(outcome, arguments), references, strict=True)):
        dtype = operation.result_dtype(trial, arguments, part)
        what = "result" if len(references) == 1 else f"result {observed.expression.removeprefix(outcome.name)}"
        any_floating = operation.dtype_is_advice(arguments, part)
        has_form(trial, observed, reference.exact.shape, dtype, what, any_floating=any_floating)
        trial.effective.pop()
        yield observed, reference, what


def gradients_agree(trial: Trial, outcome: Outcome, references: Mapping[str, Reference]) -> None:
    """Raise Violation unless every requested gradient lies within its bound."""
    for name in outcome.gradients:
        trial.assert_within_bound(outcome.gradient(name), references[name], f"gradient of {name}")


def call_within_bound(trial: Trial, operation: OpInfo, arguments: Arguments) -> tuple[Observation, Reference]:
    """Return the result of a call and its reference. Raises Violation unless it lies within its bound."""
    reference = operation.exact(trial, arguments, use_exact_oracle=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, operation, arguments, outcome, [reference])
    return outcome.result, reference
