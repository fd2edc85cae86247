"""Recording of the parameters that the calls of a form give, and candidates whose parameter has another default."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.meanings import BUILT, CALLED, Parameters

_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def open_parameters(candidate: Candidate) -> dict[str, Any]:
    """Return by name, with ``BUILT`` or ``CALLED`` before it, the defaults of what a caller may leave out."""
    listed = {BUILT: candidate.constructor, CALLED: candidate.parameters}
    return {
        place + name: p.default
        for place, parameters in listed.items()
        for name, p in parameters.items()
        if p.default is not p.empty and p.kind not in _MANY
    }


@contextlib.contextmanager
def record_parameters(candidate: Candidate) -> Iterator[tuple[Candidate, set[str]]]:
    """Yield a candidate, and the names of the parameters that it is given meanwhile, or was built with before."""
    given = {BUILT + name for name in candidate.made_with()}
    if not candidate.is_class:
        yield replace(candidate, thing=_noting(candidate.thing, candidate.parameters, given)), given
        return
    method = "forward" if candidate.parameters_of("forward") else "__call__"
    own = inspect.getattr_static(candidate.thing, method, None)
    if not inspect.isfunction(own):
        yield candidate, given
        return
    held = vars(candidate.thing).get(method)
    setattr(candidate.thing, method, _noting(own, inspect.signature(own).parameters, given))
    try:
        yield candidate, given
    finally:
        if held is None:
            delattr(candidate.thing, method)
        else:
            setattr(candidate.thing, method, held)
    given |= {BUILT + name for name in candidate.made_with()}


def _noting(function: Callable[..., Any], parameters: Parameters, given: set[str]) -> Callable[..., Any]:
    """Return a function that notes the names of what it is given."""
    names = [name for name, p in parameters.items() if p.kind not in _MANY]

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        given.update(CALLED + name for name in (*names[: len(arguments)], *options))
        return function(*arguments, **options)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


def with_default(candidate: Candidate, parameter: str, value: Any) -> Candidate | None:
    """Return a candidate with another default of a parameter, ``BUILT`` or ``CALLED`` before it; None for a method."""
    if parameter.startswith(BUILT):
        name = parameter.removeprefix(BUILT)
        start = _defaulting(candidate.thing.__init__, name, value)
        kind = type(
            candidate.thing.__name__, (candidate.thing,), {"__init__": start, "__module__": candidate.thing.__module__}
        )
        return replace(candidate, thing=kind)
    if candidate.is_class:
        return None
    return replace(candidate, thing=_defaulting(candidate.thing, parameter.removeprefix(CALLED), value))


def _defaulting(function: Callable[..., Any], name: str, value: Any) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        return function(
            *arguments, **({} if name in signature.bind(*arguments, **options).arguments else {name: value}), **options
        )

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
