"""Code that is right as written, called as if optional libraries were missing."""

from __future__ import annotations

import inspect
from dataclasses import replace
from types import CodeType

from veriformer.verify.forms.afresh import WITHOUT, without_libraries
from veriformer.verify.forms.binding import SURROUNDINGS
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.recognition.nearest import OPERATION, Reading


def wrong_elsewhere(found: Reading) -> Reading:
    """Return the reading with libraries lacking what the code asks for by ``hasattr``, if it answers as many calls so
    and not all of them right; else the one that was found.

    A flag of its module is no such question: its other value may stand for another operation.
    """
    form, candidate = found.form, found.candidate
    if not found.fit.everywhere or form.judge is not None or "hasattr" not in names_in(candidate):
        return found
    with without_libraries(candidate):
        fit = Fitting(OPERATION[form.operation]).fit(form.bind(candidate, found.readings), found.conventions)
    if fit.everywhere or fit.answered < found.fit.answered:
        return found
    told = f"right as it is found, and judged with {WITHOUT}"
    match = replace(found.match, told=(*found.match.told, told))
    return replace(found, match=match, readings={**found.readings, SURROUNDINGS: WITHOUT})


def names_in(candidate: Candidate) -> set[str]:
    """Return all names that the code of a candidate mentions, and that of the classes of its file that it inherits."""
    thing = candidate.thing
    own = [kind for kind in inspect.getmro(thing) if kind.__module__ == thing.__module__] if candidate.is_class else []
    methods = [x for kind in own for x in vars(kind).values()] or [inspect.unwrap(thing)]
    codes = [one.__code__ for one in methods if hasattr(one, "__code__")]
    for code in codes:  # and those of the functions that are made inside
        codes += [x for x in code.co_consts if isinstance(x, CodeType)]
    return {name for code in codes for name in code.co_names}
