"""Defaults that the same argument has elsewhere in the module: what whoever wrote it gives where nothing is said."""

from __future__ import annotations

import inspect
from typing import Any

from veriformer.verify.forms.candidate import Candidate


def default_elsewhere(candidate: Candidate, name: str) -> Any:
    """The one default that arguments of this name have in the module's other classes and functions.

    ``inspect.Parameter.empty`` where none has one, where they differ, and where it is no plain number, flag or word.
    """
    found: list[Any] = []
    for thing in candidate.siblings().values():
        if getattr(thing, "__module__", None) != getattr(candidate.thing, "__module__", "") or not callable(thing):
            continue
        try:
            p = inspect.signature(thing).parameters.get(name)
        except (ValueError, TypeError):
            continue
        if p is not None and p.default is not p.empty and p.default not in found:
            found.append(p.default)
    plain = len(found) == 1 and (found[0] is None or isinstance(found[0], bool | int | float | str))
    return found[0] if plain else inspect.Parameter.empty
