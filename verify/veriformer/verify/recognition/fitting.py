"""Agreement of a bound operation with the spec's formula on drawn calls, which decides between readings."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis.errors import HypothesisException, UnsatisfiedAssumption
from torch.utils import _pytree as pytree

from veriformer.verify.contract.features import features
from veriformer.verify.contract.refusals import AVOIDED
from veriformer.verify.contract.signatures import OPTIONAL, POSITIONAL
from veriformer.verify.domain.constants import (
    Unadmitted,
    estimate_constants,
    hidden,
    nearest,
    stated_defaults,
    with_smaller,
)
from veriformer.verify.domain.sample import Sample
from veriformer.verify.examples import EXAMPLES_PER_SEED, prepared, without_constants
from veriformer.verify.forms.form import Fit, NotOffered
from veriformer.verify.judging.arguments import array, with_required_arguments
from veriformer.verify.judging.judge import HarnessError, Reference, Undefined, Violation, ratios
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.results.domain import Domain
from veriformer.verify.targets.claims import read_claims
from veriformer.verify.targets.target import Target

PLAIN, DRAWN = 6, 18
"""Calls by which readings are told apart: plain ones, and drawn ones with options and structured values."""

FORMATS = ("fp32", "fp64", "bf16")
"""Formats in which calls are made: the first that is answered. Most code is written for float32."""

HEADS_OF_ITS_OWN = "heads narrower or wider than d / H"
_AVOIDED = AVOIDED | {"a context of another width"}
"""Features that modules which hold their weights hardly ever have: operations that know the first are drawn without."""

_NOT_OFFERED = f"raised {NotOffered.__name__}"

CLOSE = 0.9
"""A reading that explains less of the variance is not tried with other constants."""

_KEPT = ("x", "context", "w_o")
"""Arguments of layers that are no weights, or that follow such as make the result 0."""

Constants = Mapping[str, Any]


@dataclass
class Call:
    """A drawn call, and its exact result for given constants."""

    trial: Trial
    arguments: Arguments
    ordinary: bool
    exact: dict[Any, list[Reference]] = field(default_factory=dict)

    @property
    def numbers(self) -> int:
        """Return how many numbers its tensors hold."""
        leaves = pytree.tree_leaves(dict(self.arguments))
        return sum(x.numel() for x in leaves if isinstance(x, torch.Tensor))

    def references(self, operation: OpInfo, constants: Constants) -> list[Reference]:
        """Return the reference of every part of the result."""
        key = tuple(sorted(constants.items()))
        if key not in self.exact:
            trial = copy.copy(self.trial)
            trial.effective, trial.constants = [], constants
            self.exact[key] = operation.exact(trial, self.arguments, use_exact_oracle=False)
        return self.exact[key]


def target_of(operation: str, function: Callable[..., Any], conventions: Mapping[str, str]) -> Target:
    """Wrap a bound operation as a target."""
    implementation = SimpleNamespace(**{operation: function})
    claims = read_claims({"conventions": dict(conventions)})
    return Target(spec=operation, implementation=implementation, claims=claims, version=None, loader="")


@dataclass
class Fitting:
    """The calls of one operation by one signature, drawn once for all readings that share it.

    avoided: names of features that no call has. most: so many numbers a call has at most, where what code does with
    them is not known. drawn: how many calls there are beside the plain ones. answers: the format in which some reading
    was answered, which is asked for alone from then on.
    """

    operation: OpInfo
    avoided: frozenset[str] = frozenset()
    most: float = math.inf
    drawn: int = DRAWN
    calls: dict[Any, list[Call]] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)

    def fit(self, function: Callable[..., Any], conventions: Mapping[str, str], every: int = 1) -> Fit:
        """Return the fit of this function on every ``every``-th call, in the first format in which it answers."""
        target = target_of(self.operation.name, function, conventions)
        found = Fit(0, 0, 0, False, 0.0, 0.0)
        plain = self._plain(target)
        for dtype in self.answers or [dtype for dtype in FORMATS if dtype in self.operation.dtypes]:
            found = self._in(dtype, plain, conventions, every)
            if found.answered:
                self.answers = [dtype]
                return found
        return found

    def holds(self, function: Callable[..., Any], conventions: Mapping[str, str]) -> bool | None:
        """Return whether every call that a function answers is right, in the first format in which it answers some.

        It ends at the first call that is not. None if no call is answered.
        """
        target = self._plain(target_of(self.operation.name, function, conventions))
        if hidden(target, self.operation.name):  # its constants are found from all calls
            fit = self.fit(function, conventions)
            return fit.everywhere if fit.answered else None
        for dtype in self.answers or [dtype for dtype in FORMATS if dtype in self.operation.dtypes]:
            answers = ((call, _answer(target, call)[0]) for call in self._drawn(dtype, target, conventions))
            fits = (self._fit_one(target, call, outcome) for call, outcome in answers if outcome is not None)
            held = (fit.everywhere for fit in fits if fit.answered)
            first = next(held, None)
            if first is not None:
                self.answers = [dtype]
                return first and all(held)
        return None

    def _plain(self, target: Target) -> Target:
        """Return a target without features that modules with weights hardly ever have."""
        known = {one.name for one in features(self.operation.name)}
        avoided = dict.fromkeys(known & _AVOIDED if HEADS_OF_ITS_OWN in known else known & self.avoided, "")
        return target.within({self.operation.name: Domain(refused=avoided)}) if avoided else target

    def answered_calls(self, function: Callable[..., Any], conventions: Mapping[str, str]) -> list[Arguments]:
        """Return the arguments of the calls that were answered, in the format in which some were."""
        found = []
        for key, calls in self.calls.items():
            target = target_of(self.operation.name, function, conventions)
            same = (target.unsupported_args(self.operation.name), target.requires(self.operation.name))
            if key[0] in self.answers and key[2:4] == same:
                found += [call.arguments for call in calls if _answer(target, call)[0] is not None]
        return found

    def refused_features(self, function: Callable[..., Any], conventions: Mapping[str, str]) -> frozenset[str]:
        """Return the features of shapes that calls can be drawn without, where no call that has one was answered."""
        target = self._plain(target_of(self.operation.name, function, conventions))
        calls = self._drawn(self.answers[0], target, conventions) if self.answers else []
        answered = [_answer(target, call)[0] is not None for call in calls]
        shapes = [one for one in features(self.operation.name) if one.name in AVOIDED]
        has = {one.name: [one.present(call.arguments) for call in calls] for one in shapes}
        return frozenset(
            name
            for name, held in has.items()
            if any(held) and not any(x and y for x, y in zip(held, answered, strict=True))
        )

    def count_answers(self, function: Callable[..., Any], every: int) -> tuple[int, int]:
        """Count the calls answered, and those that reached the code, which may have refused them.

        every: one of so many drawn calls is tried, in the first dtype that the operation has.
        """
        target = self._plain(target_of(self.operation.name, function, {}))
        dtype = next(dtype for dtype in FORMATS if dtype in self.operation.dtypes)
        answers = [_answer(target, call) for call in self._drawn(dtype, target, {})[::every]]
        own = [said for outcome, said in answers if outcome is None and said and not said.startswith(_NOT_OFFERED)]
        answered = sum(outcome is not None for outcome, _ in answers)
        return answered, answered + len(own)

    def right_by(
        self, function: Callable[..., Any], without: Callable[..., Any], conventions: Mapping[str, str], option: str
    ) -> tuple[int, int, int]:
        """Return of the calls that give an option the number that are right by a function, the number that it answers,
        and the number that are right by another function that is not given the option."""
        target, other = (self._plain(target_of(self.operation.name, x, conventions)) for x in (function, without))
        default = OPTIONAL[self.operation.name][option]
        calls = self._drawn(self.answers[0], target, conventions) if self.answers else []
        right, answered, anyway = 0, 0, 0
        for call in calls:
            value = call.arguments.get(option)
            if value is None or (not isinstance(value, torch.Tensor) and value == default):
                continue
            found = _answer(target, call)[0]
            if found is None:
                continue
            left = {name: x for name, x in call.arguments.items() if name != option}
            same = _call(_trial(other, call), left)[0]
            answered += 1
            right += self._right(target, call, found)
            anyway += same is not None and self._right(target, call, same)
        return right, answered, anyway

    def _right(self, target: Target, call: Call, outcome: Outcome) -> bool:
        """Return whether the outcome of a call is right."""
        return self._fit_one(target, call, outcome).everywhere

    def _fit_one(self, target: Target, call: Call, outcome: Outcome) -> Fit:
        """Return the fit of one call, none of which is answered where the target's constants do not admit it."""
        constants = stated_defaults(target, self.operation.name)
        return _fit(self.operation, 1, [(call, outcome)], constants, "", 0)

    def vanishes(self, function: Callable[..., Any]) -> bool:
        """Return whether the result of every plain call that is answered is 0 where all weights but w_o are."""
        target = self._plain(target_of(self.operation.name, function, {}))
        found = []
        for call in self._drawn("fp32", target, {}):
            weightless = {name: _zero(x) if name not in _KEPT else x for name, x in call.arguments.items()}
            if call.ordinary:
                found.append(_call(_trial(target, call), weightless)[0])
        return not any(bool((one.value != 0).any()) for one in found if one is not None)

    def explaining(
        self,
        function: Callable[..., Any],
        rivals: Iterable[tuple[str, Callable[..., Any]]],
        conventions: Mapping[str, str],
    ) -> str | None:
        """Return the name of the first rival that gives the results of a function in all plain calls that both answer.

        None where no rival does.
        """
        answers = self._answers(function, conventions)
        for name, rival in rivals:
            alike = self._compare_answers(answers, rival, conventions)
            if next(alike, False) and all(alike):
                return name
        return None

    def differs(self, function: Callable[..., Any], other: Callable[..., Any], conventions: Mapping[str, str]) -> bool:
        """Return whether a function gives something else than another one in some plain call that both answer."""
        return not all(self._compare_answers(self._answers(function, conventions), other, conventions))

    def _answers(self, function: Callable[..., Any], conventions: Mapping[str, str]) -> list[tuple[Call, Any]]:
        """Return the plain calls that a function answers, with its results."""
        target = self._plain(target_of(self.operation.name, function, conventions))
        plain = [call for call in self._drawn("fp32", target, conventions) if call.ordinary]
        outcomes = [(call, _answer(target, call)[0]) for call in plain]
        return [(call, outcome.value) for call, outcome in outcomes if outcome is not None]

    def _compare_answers(
        self, answers: Sequence[tuple[Call, Any]], rival: Callable[..., Any], conventions: Mapping[str, str]
    ) -> Iterator[bool]:
        """Yield whether results are those of a rival, for each call that it answers."""
        other = target_of(self.operation.name, rival, conventions)
        for call, result in answers:
            expected = _answer(other, call)[0]
            if expected is not None:
                yield _near(result, expected.value)

    def _in(self, dtype: str, target: Target, conventions: Mapping[str, str], every: int) -> Fit:
        calls = self._drawn(dtype, target, conventions)[::every]
        answers = [(call, *_answer(target, call)) for call in calls]
        answered = [(call, outcome) for call, outcome, _ in answers if outcome is not None]
        said = [one for _, _, one in answers if one]
        own = [one for one in said if not one.startswith(_NOT_OFFERED)]
        error, raised = commonest(own or said), len(own)
        found = _fit(self.operation, len(calls), answered, stated_defaults(target, self.operation.name), error, raised)
        names = hidden(target, self.operation.name)
        if names and not found.everywhere and found.closeness > CLOSE:
            plain = [Sample(_trial(target, call), call.arguments, x) for call, x in answered[:PLAIN]]
            samples = with_smaller(self.operation, plain, lambda trial, a: _call(trial, a)[0])
            shown = target.shows(self.operation.name)
            declared = {name: shown[name] for name in names if name in shown}
            try:
                constants = estimate_constants(self.operation, names, samples, dtype, declared) if samples else None
            except Unadmitted:  # the probe tells it
                constants = None
            if constants is None and samples:
                constants = nearest(self.operation, names, samples)
            if constants:
                found = _fit(self.operation, len(calls), answered, constants, error, raised)
        return found

    def _drawn(self, dtype: str, target: Target, conventions: Mapping[str, str]) -> list[Call]:
        name = self.operation.name
        shapes = bool(target.domain(name).refused)
        key = dtype, tuple(sorted(conventions.items())), target.unsupported_args(name), target.requires(name), shapes
        if key not in self.calls:
            drawn = _shared_calls(self.operation, target, key, self.drawn)
            self.calls[key] = [call for call in drawn if call.numbers <= self.most]
        return self.calls[key]


_SHARED: dict[Any, list[Call]] = {}
"""Calls that were drawn for other candidates of this process, by all that a draw depends on."""

_MOST_SHARED = 64
"""Entries of it that are kept: those used last."""


def _shared_calls(operation: OpInfo, target: Target, key: Any, drawn: int) -> list[Call]:
    """Return the plain and the drawn calls of an operation by the key of a fitting, drawn once in a process."""
    refused = frozenset(target.refusals(operation.name).messages)
    exactly = tuple(getattr(target.operation(operation.name), "exactly", {}).items())
    whole = operation.name, drawn, key, refused, exactly
    calls = _SHARED.pop(whole, None)
    if calls is None:
        calls = [
            *_draws(operation, target, key[0], "sample_basic", PLAIN),
            *_draws(operation, target, key[0], "sample", drawn),
        ]
    _SHARED[whole] = calls
    if len(_SHARED) > _MOST_SHARED:
        del _SHARED[next(iter(_SHARED))]
    return calls


def commonest(said: Sequence[str]) -> str:
    """Return the message of most refusals, for one call may be refused for a peculiarity; of equally common ones the
    first.

    Numbers in it, such as sizes, make no difference.
    """
    counts = Counter(re.sub(r"\d+", "", one) for one in said)
    return max(said, key=lambda one: counts[re.sub(r"\d+", "", one)], default="")


def _near(found: Any, expected: Any) -> bool:
    """Return whether two results, or all parts of two, are one, but for rounding in single precision."""
    own, right = pytree.tree_leaves(found), pytree.tree_leaves(expected)
    return len(own) == len(right) and all(map(_near_part, own, right))


def _near_part(found: Any, expected: Any) -> bool:
    if not (isinstance(found, torch.Tensor) and isinstance(expected, torch.Tensor)) or found.shape != expected.shape:
        return False
    other = found != expected  # infinities are equal to themselves, and their difference is no number
    if not bool(other.any()) or expected.dtype == torch.bool:
        return not bool(other.any())
    size = float(expected[expected.isfinite()].abs().max()) if bool(expected.isfinite().any()) else 0.0
    return bool((found - expected)[other].abs().max() <= 1e-4 * size)


def _zero(x: Any) -> Any:
    return torch.zeros_like(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def _draws(operation: OpInfo, target: Target, dtype: str, what: str, count: int) -> list[Call]:
    found: list[Call] = []

    def body(data: st.DataObject) -> None:
        trial = Trial(target, operation.name, POSITIONAL[operation.name], dtype, "cpu", data)
        trial.probing = True
        drawn = getattr(operation, what)(trial)
        arguments = with_required_arguments(operation.name, drawn, target.requires(operation.name))
        found.append(Call(trial, arguments, what == "sample_basic"))

    for start in range(0, count, EXAMPLES_PER_SEED):
        with without_constants(), contextlib.suppress(HypothesisException):
            prepared(body, f"recognition|{operation.name}|{what}|{start}", min(EXAMPLES_PER_SEED, count - start))()
    return found


def _trial(target: Target, call: Call) -> Trial:
    trial = copy.copy(call.trial)
    trial.target, trial.calls = target, []
    return trial


def _answer(target: Target, call: Call) -> tuple[Outcome | None, str]:
    """Make a call; return its outcome and the message of its refusal; neither where the target does not take it."""
    return _call(_trial(target, call), call.arguments)


def _call(trial: Trial, arguments: Arguments) -> tuple[Outcome | None, str]:
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            return trial.call(arguments), ""
    except UnsatisfiedAssumption:
        return None, ""
    except Violation as violation:
        return None, str(violation)


def _fit(
    operation: OpInfo, calls: int, answered: list[tuple[Call, Outcome]], constants: Constants, error: str, raised: int
) -> Fit:
    right, shapeless, numbers, good, ordinary, residual, variance = 0, 0, 0, 0, [], 0.0, 0.0
    undefined, some_ordinary = 0, any(call.ordinary for call, _ in answered)
    with np.errstate(all="ignore"):
        for call, outcome in answered:
            plain = call.ordinary or not some_ordinary
            try:
                references = call.references(operation, constants)
                parts = [array(part.value) for part in operation.parts(outcome, call.arguments)]
            except Undefined:  # not admitted by the target's constants
                undefined += 1
                continue
            except HarnessError:
                continue
            except Violation:  # no tensor
                parts = []
            held = len(parts) == len(references)
            shapes = [part.shape == one.exact.shape for part, one in zip(parts, references, strict=False)]
            shapeless += not (held and all(shapes))
            for part, reference in zip(parts, references, strict=False):
                within, left, spread = _compare(part, reference)
                held = held and bool(within.all())
                numbers, good = numbers + reference.exact.size, good + int(within.sum())
                if plain:
                    residual, variance = residual + left, variance + spread
            right += held
            if plain:
                ordinary.append(held)
    return Fit(
        calls=calls,
        answered=len(answered) - undefined,
        right=right,
        ordinary=bool(ordinary) and all(ordinary),
        share=good / numbers if numbers else 0.0,
        closeness=max(0.0, 1.0 - residual / variance) if variance else float(bool(ordinary) and all(ordinary)),
        error=error,
        raised=raised,
        shapeless=shapeless,
    )


def _compare(found: Any, reference: Reference) -> tuple[Any, float, float]:
    """Return a mask of the entries that are right, the squared distance, and the spread of the reference."""
    exact = reference.exact
    finite = exact[np.isfinite(exact)]
    spread = float(((finite - finite.mean()) ** 2).sum()) if finite.size else 0.0
    if found.shape != exact.shape:
        return np.zeros(exact.shape, dtype=bool), spread, spread
    within = ratios(found, reference) <= 1
    both = np.isfinite(exact) & np.isfinite(found)
    left = float(((found - exact)[both] ** 2).sum())
    return within, left if both.sum() == np.isfinite(exact).sum() else spread, spread
