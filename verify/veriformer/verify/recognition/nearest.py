"""Search for the reading of a candidate that is right on most calls, among all that a form knows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.conventions import are_opposite
from veriformer.verify.forms.form import UNKNOWN, Fit, Form, Match, Unfit
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.recognition.fitting import DRAWN, Fitting
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS

_T = TypeVar("_T")
OPERATION = {operation.name: operation for operation in OPERATIONS}
"""The operations that have formulas, by name."""

READINGS = 96
"""Maximum number of combinations of readings that are tried of one form."""

SCREENED, FINAL = 3, 6
"""Many combinations are tried on every third call first, and so many of them on all calls."""

FEW = 4
"""A combination that answers fewer of these calls is tried on all calls."""

FEWEST = 4
"""A reading by which so many times fewer calls are answered than by another one is not taken."""

LATER = frozenset(("mask", "mask_axes"))
"""Readings that are found last where there are too many combinations: calls without a mask tell all others."""


class Untold(Unfit):
    """Every call must be given something, and none tells how that is read."""


@dataclass(frozen=True)
class Reading:
    """Reading of a candidate, and its fit."""

    candidate: Candidate
    form: Form
    match: Match
    readings: Mapping[str, str]
    conventions: Mapping[str, str]
    fit: Fit


_MORE_DRAWN = 4 * DRAWN
"""Calls that are drawn where fewer do not tell how something is read."""


def nearest(
    form: Form, candidate: Candidate, match: Match, pinned: Mapping[str, str], drawn: Fitting | None = None
) -> Reading:
    """Return the reading that fits everywhere, else the best one; of equal ones the contract's own.

    Where most calls are refused for the shapes that they have, it is the nearest on calls of other shapes. drawn: the
    calls of the operation, where another candidate was tried on them.
    """
    found = _nearest(form, candidate, match, pinned, drawn)
    if form.judge is not None or found.fit.raised <= found.fit.answered:
        return found
    fitting = Fitting(OPERATION[form.operation])
    function = form.bind(candidate, found.readings)
    fitting.fit(function, found.conventions)
    refused = fitting.refused_features(function, found.conventions)
    return _nearest(form, candidate, match, pinned, replace(fitting, calls={}, avoided=refused)) if refused else found


def _nearest(
    form: Form, candidate: Candidate, match: Match, pinned: Mapping[str, str], drawn: Fitting | None
) -> Reading:
    fitting = (drawn or Fitting(OPERATION[form.operation])) if form.judge is None else None
    known = conventions_of(form, match)
    conventions = list(choices_of(known, pinned, ""))

    def tried(choice: tuple[dict[str, str], dict[str, str]], every: int) -> Reading:
        function = form.bind(candidate, choice[1])
        fit = form.judge(function) if fitting is None else fitting.fit(function, choice[0], every)  # type: ignore[misc]
        return Reading(candidate, form, match, choice[1], choice[0], fit)

    readings = list(itertools.islice(choices_of(match.readings, pinned, f"{form.operation}."), READINGS + 1))
    if len(readings) > READINGS:
        readings = _in_two_steps(match, pinned, form.operation, lambda one: tried((dict(conventions[0]), one), 1))
    choices = list(itertools.product(conventions, readings))
    if not choices:
        raise Unfit("the claims leave no reading of it")
    if len(choices) > FINAL and fitting is not None:
        first = tenable(_screen(tried, choices))
        first.sort(key=lambda pair: pair[1].rank(), reverse=True)  # stable: of equal ones the contract's own is first
        kept = [choice for i, (choice, fit) in enumerate(first) if i < FINAL or (fit.everywhere and i < 3 * FINAL)]
        kept.append(max(first, key=lambda pair: (pair[1].answered - pair[1].raised, pair[1].rank()))[0])
        choices = [choice for choice in choices if choice in kept]
    found = [tried(choice, 1) for choice in choices]
    best = max((one for one, _ in tenable([(one, one.fit) for one in found])), key=lambda one: one.fit.rank())
    if fitting is None:
        return best
    unasked = [
        name for name, tells in form.told_by.items() if not _is_told(best, candidate, name, tells, pinned, fitting)
    ]
    if unasked and (asked := _answering_all(best, unasked, tried, fitting)) is not None:
        return asked
    pins = [name for name in form.told_by if f"{form.operation}.{name}" in pinned]
    untold = [name for name in form.told_by if name in unasked or (name not in pins and _is_tied(best, name, tried))]
    if not untold:
        return best
    if drawn is None:  # perhaps other calls tell it
        open_ = {*untold, *LATER}
        left = {name: x if name in open_ else (best.readings[name],) for name, x in match.readings.items()}
        more = replace(fitting, calls={}, drawn=_MORE_DRAWN)
        another = _nearest(form, candidate, replace(match, readings=left), pinned, more)
        return replace(another, match=replace(another.match, readings=match.readings))
    without = tried((dict(best.conventions), {**best.readings, **dict.fromkeys(untold, UNKNOWN)}), 1)
    if not without.fit.answered:  # it is asked for in every call: each of them tells it, where not all is right by all
        others = [
            {**best.readings, name: x} for name in untold for x in match.readings[name] if x != best.readings[name]
        ]
        fits = [tried((dict(best.conventions), other), 1).fit for other in others]
        if best.fit.everywhere and any(fit.answered and not fit.everywhere for fit in fits):
            return best
        raise Untold(f"it asks for its {' and '.join(untold)}, and no call tells how that is read")
    told = tuple(f"its {name} is left out: no call tells how it is read" for name in untold)
    return replace(without, match=replace(match, told=(*match.told, *told)))


def conventions_of(form: Form, match: Match) -> dict[str, tuple[str, ...]]:
    """Return the conventions that a form tries, without those values that the structure of a candidate excludes."""
    told = match.conventions
    return {key: (told[key],) if key in told else KNOWN_CONVENTIONS[key] for key in form.conventions}


def _answering_all(
    best: Reading,
    untold: Sequence[str],
    tried: Callable[[tuple[dict[str, str], dict[str, str]], int], Reading],
    fitting: Fitting,
) -> Reading | None:
    """Return the nearest reading of masks by which the code answers the calls that the best one leaves out, and none is
    refused by the code.

    A mask that is read so and right nowhere is applied wrongly; what no call with a mask is answered by is not read.
    """
    form, candidate = best.form, best.candidate
    later = {name: values for name, values in best.match.readings.items() if name in LATER}
    found = []
    for one in choices_of(later, {}, ""):
        reading = tried((dict(best.conventions), {**best.readings, **one}), 1)
        calls = fitting.answered_calls(form.bind(candidate, reading.readings), best.conventions)
        tells = [form.told_by[name] for name in untold]
        if reading.fit.raised == 0 and all(any(t(candidate, a, reading.readings) for a in calls) for t in tells):
            found.append(reading)
    return max(found, key=lambda reading: reading.fit.rank(), default=None)


def _screen(tried: Callable[[_T, int], Reading], choices: Sequence[_T]) -> list[tuple[_T, Fit]]:
    """Fit each combination on some of the calls, or on all where it answers few of them.

    A combination that answers less than half as many of all calls as another of some is left with its few: the smallest
    calls are right by many readings.
    """
    some = [(choice, tried(choice, SCREENED).fit) for choice in choices]
    most = max(fit.answered for _, fit in some)
    found = []
    for choice, fit in some:
        whole = tried(choice, 1).fit if fit.answered < FEW else fit
        found.append((choice, whole if 2 * whole.answered >= most else fit))
    return found


def _in_two_steps(
    match: Match, pinned: Mapping[str, str], operation: str, tried: Callable[[dict[str, str]], Reading]
) -> list[dict[str, str]]:
    """Return readings of masks combined with the best other readings, which are found under the first of masks."""
    later = {name: values for name, values in match.readings.items() if name in LATER}
    others = {name: values for name, values in match.readings.items() if name not in LATER}
    usual = {name: values[0] for name, values in later.items()}
    first = [{**usual, **one} for one in itertools.islice(choices_of(others, pinned, f"{operation}."), READINGS)]
    best = max((tried(one) for one in first), key=lambda one: one.fit.rank(), default=None)
    if best is None or not best.fit.answered or not later:
        return list(itertools.islice(choices_of(match.readings, pinned, f"{operation}."), READINGS))
    found = [{**best.readings, **one} for one in choices_of(later, pinned, f"{operation}.")]
    return [{name: one[name] for name in match.readings} for one in found[:READINGS]]


def tenable(found: list[tuple[_T, Fit]]) -> list[tuple[_T, Fit]]:
    """Drop the readings by which the code refuses so many more calls than by another that fewer are left, or by which
    hardly any can be made.

    The calls that such a reading still answers are the smallest, which are right by many readings.
    """
    least = min((fit.raised for _, fit in found if fit.answered), default=0)
    most = max((fit.answered for _, fit in found), default=0)
    kept = [(one, fit) for one, fit in found if fit.raised - least < fit.answered and most <= FEWEST * fit.answered]
    kept = kept or found
    return [(one, fit) for one, fit in kept if not any(_explains_more(other, fit) for _, other in kept)]


def _explains_more(other: Fit, fit: Fit) -> bool:
    """Return whether by another reading the code refuses fewer calls and is right in more."""
    return other.right > fit.right and other.raised < fit.raised and other.answered > fit.answered


def _is_told(
    best: Reading,
    candidate: Candidate,
    name: str,
    tells: Callable[[Candidate, Mapping[str, Any], Mapping[str, str]], bool],
    pinned: Mapping[str, str],
    fitting: Fitting,
) -> bool:
    """Return whether nothing asks for this reading, it is claimed, or some call that was answered tells its values
    apart."""
    if name not in best.match.readings or f"{best.form.operation}.{name}" in pinned:
        return True
    answered = fitting.answered_calls(best.form.bind(candidate, best.readings), best.conventions)
    return not answered or any(tells(candidate, arguments, best.readings) for arguments in answered)


def _is_tied(best: Reading, name: str, tried: Callable[[tuple[dict[str, str], dict[str, str]], int], Reading]) -> bool:
    """Return whether all calls are right by the opposite reading as well: a mask that hid something made no
    difference."""
    own = best.readings.get(name)
    others = [x for x in best.match.readings.get(name, ()) if own is not None and are_opposite(own, x)]
    if not best.fit.everywhere:
        return False
    fits = [tried((dict(best.conventions), {**best.readings, name: x}), 1).fit for x in others]
    return any(fit.everywhere and fit.answered == best.fit.answered for fit in fits)


def choices_of(values: Mapping[str, Sequence[str]], pinned: Mapping[str, str], prefix: str) -> Iterator[dict[str, str]]:
    """Yield every combination of values that the claims leave. prefix: before the names of the readings in claims."""
    allowed = [[v for v in options if pinned.get(prefix + name, v) == v] for name, options in values.items()]
    for chosen in itertools.product(*allowed):
        yield dict(zip(values, chosen, strict=True))
