"""Functions that build a network, ``build_model(config)``, treated as the class of their result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Unfit

_BUILDS = ("build", "make", "create")
"""First words of the names of such functions."""


def is_builder(candidate: Candidate) -> bool:
    """Return whether a function says that it builds something, and names a network of its module to build it of."""
    if not inspect.isfunction(candidate.thing) or candidate.words[0] not in _BUILDS:
        return False
    own = candidate.siblings()
    named = (own.get(name) for name in inspect.unwrap(candidate.thing).__code__.co_names)
    return any(inspect.isclass(x) and issubclass(x, nn.Module) for x in named)


def as_class(candidate: Candidate, built: Callable[[Candidate], Any]) -> Candidate:
    """Return a candidate whose class is that of what the function builds, and whose constructor is the function.

    built: an instance of such a candidate, which is made once, to see what it is. Raises Unfit where it is no network.
    """
    made = built(_of_kind(candidate, nn.Module))
    if not isinstance(made, nn.Module):
        raise Unfit("it builds no module")
    return _of_kind(candidate, type(made))


def _of_kind(candidate: Candidate, kind: type) -> Candidate:
    function = inspect.unwrap(candidate.thing)
    key = function, kind
    if key not in _MADE:

        def build(cls: type, *arguments: Any, **given: Any) -> Any:
            return function(*arguments, **given)

        own: Mapping[str, Any] = {
            "__new__": build,
            "__module__": function.__module__,
            "__signature__": inspect.signature(function),
        }
        _MADE[key] = type(function.__name__, (kind,), dict(own))
    return replace(candidate, thing=_MADE[key])


_MADE: dict[Any, type] = {}
