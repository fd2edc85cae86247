"""Code that is right where it was found, called as if its libraries and the flags of its module were others."""

from __future__ import annotations

import inspect
from dataclasses import replace

from veriformer.verify.forms.afresh import surroundings
from veriformer.verify.forms.binding import SURROUNDINGS
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.recognition.nearest import OPERATION, Reading


def wrong_elsewhere(found: Reading) -> Reading:
    """Return the reading in the first surroundings in which the code answers as many calls, and not all of them right;
    the one that was found where there are none."""
    form, candidate = found.form, found.candidate
    if not found.fit.everywhere or form.judge is not None:
        return found
    for words, changed in surroundings(candidate, names_in(candidate)).items():
        with changed:
            fit = Fitting(OPERATION[form.operation]).fit(form.bind(candidate, found.readings), found.conventions)
        if fit.answered >= found.fit.answered and not fit.everywhere:
            told = f"right as it is found, and judged with {words}"
            match = replace(found.match, told=(*found.match.told, told))
            return replace(found, match=match, readings={**found.readings, SURROUNDINGS: words})
    return found


def names_in(candidate: Candidate) -> set[str]:
    """Return all names that the code of a candidate mentions, and that of the classes of its file that it inherits."""
    thing = candidate.thing
    own = [kind for kind in inspect.getmro(thing) if kind.__module__ == thing.__module__] if candidate.is_class else []
    methods = [x for kind in own for x in vars(kind).values()] or [inspect.unwrap(thing)]
    return {name for one in methods for name in getattr(getattr(one, "__code__", None), "co_names", ())}
