"""Parts of an operation that follow from its call: formula, gradient, invalid calls, changes and slices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import (
    Argument,
    Axis,
    Choice,
    Floats,
    Integer,
    Integers,
    Mark,
    Number,
    Operation,
    Other,
    Probability,
    Tensor,
    letters_of,
)
from veriformer.verify.judging.op_info import Formula, Index, InvalidCall, OpInfo, Vjp
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.drawing import draw_call, draw_many, draw_plain_call
from veriformer.verify.strategies import values

Refusals = Callable[[Trial, Arguments], Iterable[InvalidCall]]


def operation(
    name: str,
    *,
    also: tuple[Formula, ...] = (),
    also_gradients: tuple[Vjp, ...] = (),
    refuses: Refusals = lambda trial, good: (),
    **given: Any,
) -> OpInfo:
    """Return the OpInfo of an operation: the arguments given here, and the rest derived from the record of its call.

    Draws come from the letters where none are given.

    also, also_gradients: forms that are equal to the formula and its gradient over the reals. refuses: calls that are
    refused beyond those that kinds and letters give, from a good one.
    """
    record = OPERATIONS[name]
    draw = given.setdefault("sample", partial(draw_call, record))
    if "sample_basic" not in given:
        given |= {"sample_basic": partial(draw_plain_call, record), "sample_large": draw}
        given |= {"sample_accuracy": partial(draw_many, record)}

    def good(trial: Trial) -> Arguments:
        return _with_parameters(record, trial, given["sample_basic"](trial))

    derived: dict[str, Any] = {"invalid_calls": lambda trial: invalid_calls(record, trial, good(trial), refuses)}
    if record.formula is not None:
        derived["formulas"] = (FormulaByName(record, record.formula), *also)
    if record.gradient is not None:
        derived["vjps"] = (_gradient_by_name(record, record.gradient), *also_gradients)
    if record.gradient is not None or "vjps" in given:
        derived["inputs"] = record.differentiable
    if _changing(record):
        derived["argument_perturbations"] = lambda trial: changes_of(record, trial, good(trial))
    if _leads(record) and record.result.axes != "":
        inputs = derived.get("inputs", ())
        derived["batch_slice"] = lambda trial: one_slice(record, trial, draw, inputs)
    return OpInfo(name=name, **{**derived, **given})


def _with_parameters(record: Operation, trial: Trial, plain: Arguments) -> Arguments:
    """Add omitted parameters, from 1 to 2, to a call whose other tensors determine their sizes."""
    sizes = record.sizes({name: plain[name].shape for name in record.tensors if name in plain})
    shapes = {
        name: [sizes.get(letter, 0) for (letter, *_) in letters_of(one.axes)]
        for name, one in record.parameters.items()
        if name not in plain
    }
    made = {name: trial.given(name, 1.0 + np.arange(np.prod(n)).reshape(n) / np.prod(n)) for name, n in shapes.items()}
    return {**plain, **made}


@dataclass(frozen=True)
class FormulaByName:
    """A formula of the spec, called with the arguments of a call by their names."""

    record: Operation
    formula: Callable[..., Any]

    def __call__(self, xp: Any, a: Mapping[str, Any]) -> list[Any]:
        """Return the values of every part of the result."""
        found = self.formula(xp, *_by_position(self.record, a), **_options(self.formula, self.record, a))
        return list(found) if isinstance(found, tuple) else [found]


def _gradient_by_name(record: Operation, gradient: Callable[..., Any]) -> Vjp:
    """Return the vector-Jacobian product as a function that gives the gradient by argument."""

    def gradients_of(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
        given = _by_position(record, a)
        axes = len(record.of_kind(Axis))  # which come last, after the cotangent
        given.insert(len(given) - axes, g)
        found = gradient(xp, *given, **_options(gradient, record, a))
        return dict(zip(record.differentiable, found if isinstance(found, tuple) else (found,), strict=False))

    return gradients_of


def _by_position(record: Operation, a: Mapping[str, Any]) -> list[Any]:
    return [a.get(name, argument.default) for name, argument in record.call.items()]


def _options(formula: Callable[..., Any], record: Operation, a: Mapping[str, Any]) -> dict[str, Any]:
    """Return the formula's keyword arguments: options, conventions, and masks known to a check."""
    return {name: a[name] for name in _keywords(formula) if name in a and name not in record.call}


@cache
def _keywords(formula: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(name for name, p in inspect.signature(formula).parameters.items() if p.kind is p.KEYWORD_ONLY)


def invalid_calls(record: Operation, trial: Trial, good: Arguments, refuses: Refusals) -> Iterator[InvalidCall]:
    """Yield the calls of ``refuses``, and those that kinds and letters forbid, made of a good one."""
    yield from refuses(trial, good)
    floats = tuple(name for name in record.of_kind(Floats) if good.get(name) is not None)
    for name, argument in record.arguments.items():
        if isinstance(argument, Tensor) and name in good:
            yield from _of_letters(record, name, good)
            yield from _of_leading(record, name, good)
            yield from _of_integers(record, name, good)
            if name in floats and len(floats) > 1:
                other = torch.float32 if trial.dtype is torch.float64 else torch.float64
                yield InvalidCall(f"{name} of another dtype", {**good, name: good[name].to(other)}, floats)
        if isinstance(argument, Tensor) and argument.required:
            yield InvalidCall(f"no {name}", {**good, name: None}, (name,))
        for what, value in _bad_values(record, name, good):
            yield InvalidCall(f"{what} for {name}", {**good, name: value}, (name,))


def _of_letters(record: Operation, name: str, good: Arguments) -> Iterator[InvalidCall]:
    """Yield a tensor longer along each axis that another one shares, of one for all there, and of another rank."""
    x, axes = good[name], record.tensors[name].axes
    letters = letters_of(axes)
    for axis, (factors, word) in enumerate(zip(letters, axes.replace("...", "").split(), strict=True)):
        met = tuple(key for key in _sharing(record, factors) if good.get(key) is not None)
        dim = axis - len(letters)
        if met == (name,) or not met or len(factors) > 1:
            continue
        longer = torch.cat((x, x.narrow(dim, 0, 1)), dim)
        yield InvalidCall(f"{name} too long in {word}", {**good, name: longer}, met)
        if x.shape[dim] > 1 and not word.endswith("?"):
            yield InvalidCall(f"{name} of one {word} for all", {**good, name: x.narrow(dim, 0, 1)}, met)
    if letters and not axes.startswith("..."):
        yield InvalidCall(f"{name} with an axis too many", {**good, name: x[None]}, (name, *good))


def _of_leading(record: Operation, name: str, good: Arguments) -> Iterator[InvalidCall]:
    """Yield a tensor of other leading axes than the first: fewer rows, one for all, an axis less."""
    leads = [key for key in _leads(record) if good.get(key) is not None]
    if name not in leads[1:] or good[name].ndim == len(letters_of(record.tensors[name].axes)):
        return
    x = good[name]
    for what, other in (("too few", x[1:]), ("one", x[:1]), ("no axis", x[0])):
        if x.shape[0] > 1:
            yield InvalidCall(f"{what} of {name}", {**good, name: other}, tuple(leads))


def _of_integers(record: Operation, name: str, good: Arguments) -> Iterator[InvalidCall]:
    """Yield an integer tensor of numbers and of bools, and with an entry out of range."""
    argument, x = record.tensors[name], good[name]
    if not isinstance(argument, Integers):
        return
    if not argument.floating:
        yield InvalidCall(f"floating-point {name}", {**good, name: x.double()}, (name,))
        yield InvalidCall(f"bools for {name}", {**good, name: x > 1}, (name,))
    sizes = record.sizes({key: good[key].shape for key in record.tensors if good.get(key) is not None})
    if argument.below in sizes and x.numel() and not x.is_floating_point():
        for entry in (-1, sizes[argument.below], -sizes[argument.below]):
            wrong = x.clone()
            wrong.view(-1)[-1] = entry
            yield InvalidCall(f"{entry} in {name}", {**good, name: wrong}, (name,))


def _sharing(record: Operation, factors: Sequence[str]) -> Iterator[str]:
    """Return the names of the tensors that have an axis of these letters."""
    return (name for name, one in record.tensors.items() if tuple(factors) in letters_of(one.axes))


def _bad_values(record: Operation, name: str, good: Arguments) -> Iterator[tuple[str, Any]]:
    """Yield what is wrong with a value, and the value, for arguments that are no tensors."""
    argument = record.arguments[name]
    if isinstance(argument, Axis):
        rank = good[next(iter(record.tensors))].ndim
        yield "an axis too high", rank
        yield "an axis too low", -rank - 1
    if isinstance(argument, Number | Axis | Mark):
        yield "a bool", True
    if isinstance(argument, Integer):
        yield "a fraction", 2.5
    if isinstance(argument, Number) and argument.least > float("-inf"):
        yield "a number too small", int(argument.least) - 1 if isinstance(argument, Integer) else argument.least - 1e-3
    if isinstance(argument, Number) and argument.required:
        yield "nothing", None
    if isinstance(argument, Number) and argument.least > float("-inf") and not isinstance(argument, Integer):
        yield "NaN", float("nan")
    if isinstance(argument, Probability):
        yield "a number above 1", 1.1
    if isinstance(argument, Choice):
        yield "an unknown word", "none of these"
        yield "a flag", True
    if isinstance(argument, Other) and name == "generator":
        yield "a number", 3


def changes_of(record: Operation, trial: Trial, plain: Arguments) -> tuple[Arguments, dict[str, Arguments]]:
    """Draw a call, and further ones with one of its tensors, numbers or words changed."""
    rng = trial.draw(values()).rng
    numbers = _changing(record, Number)
    a = {**plain, **{name: record.arguments[name].default for name in numbers if name not in plain}}
    a = {name: value for name, value in a.items() if value is not None}
    floats = [name for name in _changing(record, Floats) if name in a]
    changed: dict[str, Arguments] = {name: {**a, name: perturbed(trial, a[name], rng)} for name in floats}
    changed |= {name: {**a, name: a[name] + 1.0} for name in numbers if name in a}
    for name, one in record.arguments.items():
        if isinstance(one, Choice):
            words = dict.fromkeys((one.default, *one.others))
            changed |= {f"{name} {word}": {**a, name: word} for word in words if word != a.get(name, one.default)}
    return a, changed


def _changing(record: Operation, *kinds: type[Argument]) -> list[str]:
    """Return the arguments that can be changed alone: tensors, numbers other than counts and rates, words."""
    found = record.of_kind(*(kinds or (Floats, Number, Choice)))
    return [name for name in found if not isinstance(record.arguments[name], Integer | Probability)]


def _leads(record: Operation) -> list[str]:
    """Return the names of the tensors with any leading axes."""
    return [name for name, one in record.tensors.items() if one.axes.startswith("...")]


def one_slice(
    record: Operation, trial: Trial, draw: Callable[[Trial], Arguments], inputs: Sequence[str]
) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call, and one index of its first leading axis alone; inputs: the arguments that have a gradient."""
    whole = dict(draw(trial))
    leads = [name for name in _leads(record) if whole.get(name) is not None]
    own = len(letters_of(record.tensors[leads[0]].axes))
    missing = max(0, own + 1 - whole[leads[0]].ndim)
    whole |= {name: whole[name].reshape(*[1] * missing, *whole[name].shape) for name in leads}
    trial.assume(whole[leads[0]].shape[0] > 0)
    i = trial.draw(st.integers(0, whole[leads[0]].shape[0] - 1))
    index = (slice(i, i + 1),)
    places = {name: index for name in leads if name in inputs}
    return whole, {**whole, **{name: whole[name][index] for name in leads}}, {"result": index, **places}
