"""From pins to an implementation under test, without looking again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from veriformer.verify.forms.adapted import candidate_of
from veriformer.verify.forms.afresh import call_without_libraries
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.meanings import BUILT, CALLED, WITHOUT, Meanings
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.registry import form_named

SURROUNDINGS = "surroundings"
"""The reading of code that is right as it is found, and wrong where libraries lack something: it is judged there."""


def bound(pin: Pin, candidate: Candidate) -> Any:
    """Return the operation of a pin, with the contract's signature."""
    readings, meanings = _apart(pin.readings)
    elsewhere = readings.pop(SURROUNDINGS, None)
    function = form_named(pin.form).bind(candidate.read_as(meanings), readings)
    return function if elsewhere is None else call_without_libraries(function, candidate)


def _apart(readings: Mapping[str, str]) -> tuple[dict[str, str], Meanings]:
    """Separate readings from the meanings of arguments whose names are unknown."""
    meanings = {name: known for name, known in readings.items() if name.startswith((BUILT, CALLED, WITHOUT))}
    return {name: x for name, x in readings.items() if name not in meanings}, tuple(meanings.items())


def bind(form: str, thing: Any, **readings: str) -> Any:
    """Return a function or class as an operation of the contract: by the name of the form, and its readings.

    form: as ``veriformer inspect`` names it, such as ``modules/layer_norm``. Returns a callable with the arguments of
    the contract. Readings that are left out are the contract's own; ``built_with_NAME`` and ``called_with_NAME`` say
    what an argument of that name is, by a usual name or a value; ``without_PART`` puts the identity in place of a norm.
    Raises UnknownFormError for a form that there is not, and Unfit or ValueError where the thing cannot be called in
    it.
    """
    name = getattr(thing, "__qualname__", getattr(thing, "__name__", type(thing).__name__))
    module = thing if inspect.ismodule(thing) else sys.modules.get(getattr(thing, "__module__", ""))
    readings, meanings = _apart(readings)
    candidate = candidate_of(str(name), thing, module).read_as(meanings)
    match = form_named(form).match(candidate)
    if match is None:
        raise ValueError(f"{name}: not of the form {form!r}")
    unknown = readings.keys() - match.readings.keys()
    if unknown:
        raise ValueError(f"readings: {form!r} has {sorted(match.readings)} for {name}, got {sorted(unknown)}")
    whole = {reading: readings.get(reading, values[0]) for reading, values in match.readings.items()}
    return form_named(form).bind(candidate, whole)


def implementation(
    pairs: Iterable[tuple[Pin, Candidate]],
    name: str,
    claims: Mapping[str, Any] | None = None,
    around: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> SimpleNamespace:
    """Return an implementation that carries the operations of these pins; of several of one operation the first.

    claims: of the code itself; the conventions of the pins are added. around: a context for binding an operation, in
    which instances may be made.
    """
    operations: dict[str, Any] = {}
    conventions: dict[str, str] = {}
    for pin, candidate in pairs:
        if pin.operation not in operations:
            with around(pin.operation):
                operations[pin.operation] = bound(pin, candidate)
            conventions |= pin.conventions
    stated = dict(claims or {})
    stated["conventions"] = {**conventions, **stated.get("conventions", {})}
    if not stated["conventions"]:
        del stated["conventions"]
    found = SimpleNamespace(**operations, __name__=name)
    if stated:
        found.CLAIMS = stated
    return found
