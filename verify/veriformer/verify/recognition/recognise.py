"""From candidates to operations: the form and the reading that explain what each of them does."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import NEAR, UNKNOWN, Fit, Form, Match, Unfit
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.registry import every_form
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.recognition.candidates import candidates
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS

_T = TypeVar("_T")
_BY_NAME = {operation.name: operation for operation in OPERATIONS}

SHARE = 0.1
"""A named candidate is taken for the operation where its nearest reading is near, or gives such a share of the
numbers."""

READINGS = 96
"""So many combinations of readings are tried of one form at most."""

SCREENED, FINAL = 3, 6
"""Many combinations are tried on every third call first, and so many of them on all calls."""

FEW = 4
"""A combination that answers fewer of these calls is tried on all calls."""

LATER = frozenset(("mask", "mask_axes"))
"""Readings that are found last where there are too many combinations: calls without a mask tell all others."""


@dataclass(frozen=True)
class Unrecognised:
    """A candidate that looks like an operation and is not judged as it, with the reason."""

    name: str
    operation: str
    reason: str


@dataclass(frozen=True)
class Recognised:
    """What recognition found. pins: one per candidate. refused: what looked like an operation. nothing: names of the
    candidates that no form knows."""

    pins: tuple[Pin, ...] = ()
    refused: tuple[Unrecognised, ...] = ()
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "recognised": [pin.to_dict() for pin in self.pins],
            "not_recognised": [vars(one) for one in self.refused],
            "unknown": list(self.unknown),
        }


@dataclass(frozen=True)
class _Reading:
    """One way to read a candidate, and how well it fits."""

    form: Form
    match: Match
    readings: Mapping[str, str]
    conventions: Mapping[str, str]
    fit: Fit


def recognise(
    target: object, pinned: Mapping[str, str] | None = None, among: Collection[str] | None = None
) -> Recognised:
    """What a module, a package, a class, a function or an object offers.

    pinned: conventions that are claimed, readings among them as ``operation.reading``: nothing else is tried for those.
    among: names of the candidates that are looked at; all of them if left out.
    """
    pins, refused, unknown = [], [], []
    for candidate in candidates(target):
        if among is not None and candidate.name not in among:
            continue
        found, reason = of_candidate(candidate, pinned or {})
        pins += found
        if not found and reason is not None:
            refused.append(reason)
        elif not found and not candidate.is_module:
            unknown.append(candidate.name)
    return Recognised(tuple(pins), tuple(refused), tuple(unknown))


def of_candidate(candidate: Candidate, pinned: Mapping[str, str]) -> tuple[list[Pin], Unrecognised | None]:
    """The operation that a candidate is, by the form and reading that explain most, and those that it is beside it.

    Without any: why it is not what it looks like; nothing where no form knows it.
    """
    best: _Reading | None = None
    beside: dict[str, _Reading] = {}
    refused: Unrecognised | None = None
    for form in every_form().values():
        try:
            match = form.match(candidate)
            if match is None or pinned.get(f"{form.operation}.form", form.name) != form.name:
                continue
            found = nearest(form, candidate, match, pinned)
        except Unfit as reason:
            refused = refused or Unrecognised(candidate.name, form.operation, str(reason))
            continue
        except Exception as error:  # whatever it does when it is built or called is its own
            reason_told = f"{type(error).__name__} while it was tried: {str(error)[:120]}"
            refused = refused or Unrecognised(candidate.name, form.operation, reason_told)
            continue
        reason_against = _against(found)
        if not reason_against or (match.named and found.fit.answered):  # another function is the better reason
            reason_against = rival_of(form, candidate, found) or reason_against
        faulty = known_fault_of(form, candidate, found) if reason_against and match.named else None
        if faulty is not None:
            found, reason_against = faulty, ""
        elif not reason_against:
            found = _held_by_a_known_fault(form, candidate, found)
        if reason_against:
            if match.named or refused is None:
                refused = Unrecognised(candidate.name, form.operation, reason_against) if match.named else refused
        elif form.beside:
            beside.setdefault(form.operation, found)
        elif best is None or _preferred(found, best):
            best = found
    every = [best] if best is not None else list(beside.values())
    return [_pin(candidate, one) for one in every], refused


def _preferred(found: _Reading, best: _Reading) -> bool:
    if found.fit.everywhere != best.fit.everywhere:
        return found.fit.everywhere
    if found.match.named != best.match.named:
        return found.match.named
    return found.fit.better_than(best.fit)


def _against(found: _Reading) -> str:
    """Why a candidate is not taken for the operation by its nearest reading; empty where it is."""
    fit = found.fit
    if fit.answered == 0:
        return f"no call of it was answered: {fit.error[:160] or 'nothing could be asked'}"
    if 2 * fit.shapeless > fit.answered:  # it works along other axes, or on something else
        return f"{fit.shapeless} of {fit.answered} results have another shape than the operation's"
    if fit.everywhere:
        return ""
    if fit.raised > fit.answered:  # what is left are the smallest calls, which are right by many readings
        return f"it refuses {fit.raised} of the calls that it could take, and answers {fit.answered}: {fit.error[:160]}"
    if found.match.named and _near(found):
        return ""
    how = f"the nearest reading gives {fit.share:.0%} of the numbers and explains {fit.closeness:.0%} of their variance"
    return how if found.match.named else f"neither name nor signature say so, and {how}"


def rival_of(form: Form, candidate: Candidate, found: _Reading) -> str:
    """Why another function explains what no reading does; empty where none explains it."""
    if found.fit.everywhere or not form.rivals or form.judge is not None:
        return ""
    fitting = Fitting(_BY_NAME[form.operation])
    for choice in _choices(found.match.readings, {}, ""):
        function = form.bind(candidate, choice)
        for name, rival in form.rivals.items():
            if fitting.explained(function, rival, found.conventions):
                return f"it has {name}, which the contract's {form.operation} has not"
    return ""


_OF_WEIGHTS = frozenset(("joined", "held", "norms", "head_size"))
"""Readings that say which entries of a module's parameters are whose."""


def _held_by_a_known_fault(form: Form, candidate: Candidate, found: _Reading) -> _Reading:
    """The reading by which a known fault explains what none makes right, of those that differ in whose weights are
    whose: wrong results tell these apart in no other way, and a counterexample by the wrong one would be none."""
    own = _OF_WEIGHTS & found.match.readings.keys()
    if found.fit.everywhere or not own or form.judge is not None:
        return found
    among = {name: x if name in own else (found.readings[name],) for name, x in found.match.readings.items()}
    return known_fault_of(form, candidate, found, among) or found


def known_fault_of(
    form: Form, candidate: Candidate, found: _Reading, among: Mapping[str, tuple[str, ...]] | None = None
) -> _Reading | None:
    """The reading by which it gives what the operation gives with a known fault: far from right, and yet the operation.

    among: the readings to try, by default all. None where no known fault explains it.
    """
    if not found.fit.answered or form.judge is not None:
        return None
    mutants, combinators = (
        importlib.import_module(f"veriformer.verify.mutants{name}") for name in ("", ".combinators")
    )  # every faulty implementation there is: asked for by name, and only where nothing else explains it
    fitting = Fitting(_BY_NAME[form.operation])
    for choice in _choices(among or found.match.readings, {}, ""):
        function = form.bind(candidate, choice)
        for mutant in mutants.MUTANTS:
            fault = mutant.faults.get(form.operation)
            if fault is not None and fitting.explained(
                function, combinators.faulty(form.operation, fault), found.conventions
            ):
                told = f"it gives what a known fault gives: {mutant.title}"
                match = replace(found.match, told=(*found.match.told, told))
                return replace(found, match=match, readings=choice)
    return None


def _near(found: _Reading) -> bool:
    """Whether the nearest reading is near enough, or nothing else has the structure that was matched."""
    fit = found.fit
    return found.form.closed or fit.ordinary or fit.closeness >= NEAR or fit.share >= SHARE


def nearest(form: Form, candidate: Candidate, match: Match, pinned: Mapping[str, str]) -> _Reading:
    """The reading that fits everywhere, else the one that explains most; of equal ones the contract's own."""
    fitting = Fitting(_BY_NAME[form.operation]) if form.judge is None else None
    known = {key: KNOWN_CONVENTIONS[key] for key in form.conventions}
    conventions = list(_choices(known, pinned, ""))

    def tried(choice: tuple[dict[str, str], dict[str, str]], every: int) -> _Reading:
        function = form.bind(candidate, choice[1])
        fit = form.judge(function) if fitting is None else fitting.fit(function, choice[0], every)  # type: ignore[misc]
        return _Reading(form, match, choice[1], choice[0], fit)

    readings = list(itertools.islice(_choices(match.readings, pinned, f"{form.operation}."), READINGS + 1))
    if len(readings) > READINGS:
        readings = _in_two_steps(match, pinned, form.operation, lambda one: tried((dict(conventions[0]), one), 1))
    choices = list(itertools.product(conventions, readings))
    if not choices:
        raise Unfit("the claims leave no reading of it")
    if len(choices) > FINAL and fitting is not None:
        first = _tenable(_screened(tried, choices))
        first.sort(key=lambda pair: pair[1].rank(), reverse=True)  # stable: of equal ones the contract's own is first
        kept = [choice for i, (choice, fit) in enumerate(first) if i < FINAL or (fit.everywhere and i < 3 * FINAL)]
        choices = [choice for choice in choices if choice in kept]
    found = [tried(choice, 1) for choice in choices]
    best = max((one for one, _ in _tenable([(one, one.fit) for one in found])), key=lambda one: one.fit.rank())
    if fitting is None:
        return best
    untold = [
        name for name, tells in form.told_by.items() if not _is_told(best, candidate, name, tells, pinned, fitting)
    ]
    if not untold:
        return best
    without = tried((dict(best.conventions), {**best.readings, **dict.fromkeys(untold, UNKNOWN)}), 1)
    if not without.fit.answered:  # it is asked for in every call: each of them tells it, where not all is right by all
        others = [
            {**best.readings, name: x} for name in untold for x in match.readings[name] if x != best.readings[name]
        ]
        fits = [tried((dict(best.conventions), other), 1).fit for other in others]
        if best.fit.everywhere and any(fit.answered and not fit.everywhere for fit in fits):
            return best
        raise Unfit(f"it asks for its {' and '.join(untold)}, and no call tells how that is read")
    told = tuple(f"its {name} is left out: no call tells how it is read" for name in untold)
    return replace(without, match=replace(match, told=(*match.told, *told)))


def _screened(tried: Callable[[_T, int], _Reading], choices: Sequence[_T]) -> list[tuple[_T, Fit]]:
    """What each combination makes of some of the calls; one that answers few of them, of all calls.

    One that answers less than half as many of all calls as another of some is left with its few: the
    smallest calls are right by many readings.
    """
    some = [(choice, tried(choice, SCREENED).fit) for choice in choices]
    most = max(fit.answered for _, fit in some)
    found = []
    for choice, fit in some:
        whole = tried(choice, 1).fit if fit.answered < FEW else fit
        found.append((choice, whole if 2 * whole.answered >= most else fit))
    return found


def _in_two_steps(
    match: Match, pinned: Mapping[str, str], operation: str, tried: Callable[[dict[str, str]], _Reading]
) -> list[dict[str, str]]:
    """Readings of masks beside the best of all others, which is found under the first readings of masks."""
    later = {name: values for name, values in match.readings.items() if name in LATER}
    others = {name: values for name, values in match.readings.items() if name not in LATER}
    usual = {name: values[0] for name, values in later.items()}
    first = [{**usual, **one} for one in itertools.islice(_choices(others, pinned, f"{operation}."), READINGS)]
    best = max((tried(one) for one in first), key=lambda one: one.fit.rank(), default=None)
    if best is None or not best.fit.answered or not later:
        return list(itertools.islice(_choices(match.readings, pinned, f"{operation}."), READINGS))
    found = [{**best.readings, **one} for one in _choices(later, pinned, f"{operation}.")]
    return [{name: one[name] for name in match.readings} for one in found[:READINGS]]


def _tenable(found: list[tuple[_T, Fit]]) -> list[tuple[_T, Fit]]:
    """Those without the readings by which the code refuses so many more calls than by another that fewer are left.

    What such a reading still answers are the smallest calls, which are right by many readings.
    """
    least = min((fit.raised for _, fit in found if fit.answered), default=0)
    kept = [(one, fit) for one, fit in found if fit.raised - least < fit.answered]
    return kept or found


def _is_told(
    best: _Reading,
    candidate: Candidate,
    name: str,
    tells: Callable[[Candidate, Mapping[str, Any], Mapping[str, str]], bool],
    pinned: Mapping[str, str],
    fitting: Fitting,
) -> bool:
    """Whether nothing asks for this reading, it is claimed, or some call that was answered tells its values apart."""
    if name not in best.match.readings or f"{best.form.operation}.{name}" in pinned:
        return True
    answered = fitting.answered(best.form.bind(candidate, best.readings), best.conventions)
    return not answered or any(tells(candidate, arguments, best.readings) for arguments in answered)


def _choices(values: Mapping[str, Sequence[str]], pinned: Mapping[str, str], prefix: str) -> Iterator[dict[str, str]]:
    allowed = [[v for v in options if pinned.get(prefix + name, v) == v] for name, options in values.items()]
    for chosen in itertools.product(*allowed):
        yield dict(zip(values, chosen, strict=True))


def _deviations(found: _Reading) -> tuple[str, ...]:
    """The readings that are not the contract's."""
    first = {name: values[0] for name, values in found.match.readings.items() if name not in found.form.neutral}
    return tuple(name for name, value in found.readings.items() if value not in (first.get(name, value), UNKNOWN))


def _pin(candidate: Candidate, found: _Reading) -> Pin:
    told, form = list(found.match.told), found.form
    settled = form.settled(form.bind(candidate, found.readings)) if form.settled is not None else {}
    conventions = {**found.conventions, **settled}
    own = {key: values[0] for key, values in KNOWN_CONVENTIONS.items() if values}
    return Pin(
        operation=found.form.operation,
        form=found.form.name,
        name=candidate.name,
        readings=dict(found.readings),
        deviations=_deviations(found),
        conventions={key: value for key, value in conventions.items() if value != own[key]},
        everywhere=found.fit.everywhere,
        told=tuple(told),
    )
