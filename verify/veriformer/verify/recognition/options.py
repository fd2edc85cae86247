"""Parameters with defaults whose names no form knows, tried as the options of the contract that are still open."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.meanings import BUILT, CALLED
from veriformer.verify.recognition.by_behaviour import describe_meaning
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.recognition.nearest import OPERATION, Reading, nearest
from veriformer.verify.recognition.unread import OF_RUNNING, PUBLISHED, never_given

FEWEST = 2
"""Least number of calls with an option that are right by a parameter, and wrong without it."""

SECONDS = 6.0
"""Processor time after which no further parameter of a candidate is tried."""

_STEM = 4
"""Letters in which words of one stem begin alike."""

_BY_NAME = frozenset(("generator", "dtype", "training", "dropout_p"))
"""Options that no result of one call tells: they are known by their names alone."""


def with_options(found: Reading) -> Reading:
    """Return the reading by which parameters that no call gives are the options that they are by what they do.

    A parameter is an option of the contract if calls that give the option are right by it, and more of them than
    without it: all of them, or half where its name has a word of the option's. Of two options that explain as much, it
    is neither.
    """
    if found.form.judge is not None or found.form.operation not in OPTIONAL:
        return found
    until = time.process_time() + SECONDS
    for name, default in never_given(found).items():
        plain = name.removeprefix(BUILT).removeprefix(CALLED)
        if plain in OF_RUNNING or plain in PUBLISHED:
            continue
        found = _as_open_option(found, name, default, until) or found
    return found


def _as_open_option(found: Reading, name: str, default: Any, until: float) -> Reading | None:
    """Return the reading by which one parameter is an open option; None where it is none, or may be two."""
    plain = name.removeprefix(BUILT).removeprefix(CALLED)
    best: list[tuple[int, Reading]] = []
    for option in sorted(_open(found, default), key=lambda one: not _shares_a_word(plain, one)):
        if time.process_time() > until:
            break
        one = _read_as(found, name, option)
        if one is None:
            continue
        right, answered, anyway = _count_explained(found, one, option)
        if right - anyway < FEWEST:
            continue
        if right == answered:
            return one
        best += [(right, one)] if 2 * right >= answered and _shares_a_word(plain, option) else []
    most = max((right for right, _ in best), default=0)
    chosen = [one for right, one in best if right == most]
    return chosen[0] if len(chosen) == 1 else None


def _open(found: Reading, default: Any) -> Iterator[str]:
    """Yield the options of the contract that the code is not known to take, and whose values a parameter may have."""
    taken = inspect.signature(found.form.bind(found.candidate, found.readings)).parameters
    for option, usual in OPTIONAL[found.form.operation].items():
        if option not in taken and option not in _BY_NAME and _may_be(default, usual):
            yield option


def _may_be(default: Any, usual: Any) -> bool:
    """Return whether a parameter of this default may be an option of that one: None stands for anything."""
    if default is None or usual is None:
        return not isinstance(default, str | bool) or not isinstance(usual, str | bool | None)
    kinds = [x for x in (bool, str, int | float) if isinstance(usual, x)]
    return isinstance(default, kinds[0]) and isinstance(default, bool) == isinstance(usual, bool)


def _read_as(found: Reading, name: str, option: str) -> Reading | None:
    """Return the reading of a candidate whose parameter is called like an option; None where no form takes it so."""
    form, plain = found.form, name.removeprefix(BUILT).removeprefix(CALLED)
    try:
        candidate = found.candidate.read_as(((name, option),))
        match = form.match(candidate)
        if match is None:
            return None
        told = (*found.match.told, describe_meaning(plain, option))
        match = replace(match, told=tuple(dict.fromkeys((*match.told, *told))))
        if match.readings.keys() != found.match.readings.keys():
            one = nearest(form, candidate, match, {})
        else:
            function = form.bind(candidate, found.readings)
            fit = Fitting(OPERATION[form.operation]).fit(function, found.conventions)
            one = replace(found, candidate=candidate, match=match, fit=fit)
        taken = inspect.signature(form.bind(candidate, one.readings)).parameters
    except Exception:  # no form takes it so, or it has an argument of that name
        return None
    return one if option in taken else None


def _count_explained(before: Reading, after: Reading, option: str) -> tuple[int, int, int]:
    """Return of the calls that give an option the numbers that are right by a reading, answered, and right without."""
    fitting = Fitting(OPERATION[after.form.operation])
    function = after.form.bind(after.candidate, after.readings)
    fitting.fit(function, after.conventions)
    without = before.form.bind(before.candidate, before.readings)
    return fitting.right_by(function, without, after.conventions, option)


def _shares_a_word(name: str, option: str) -> bool:
    """Return whether two names have words that begin alike: ``smooth_eps`` and ``label_smoothing``."""
    return any(one[:_STEM] == other[:_STEM] for one in words(name) for other in words(option))
