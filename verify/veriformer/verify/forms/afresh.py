"""Code that is bound anew with a parameter at another value than it is usually given."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from veriformer.verify.forms import building, construction, holding
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.configs import untraced


@contextlib.contextmanager
def with_parameter(candidate: Candidate, *, built: bool, name: str, value: Any) -> Iterator[Candidate]:
    """Give a parameter this value whatever else it is given: ``name``, or ``config.entry`` of a configuration.

    built: whether it is a parameter of the constructor. Instances that were made before are not used inside.
    """
    with _without_instances():
        if not candidate.is_class:
            yield replace(candidate, thing=override_argument(candidate.thing, name, value))
            return
        kind = candidate.thing
        method = "__init__" if built else _find_method(kind, name.partition(".")[0])
        own = method in vars(kind)
        before = getattr(kind, method)
        setattr(kind, method, override_argument(before, name, value))
        try:
            yield candidate
        finally:
            if own:
                setattr(kind, method, before)
            else:
                delattr(kind, method)


WITHOUT = "libraries without what hasattr asks for"
"""Surroundings in which code must be right as well: whoever asks what a library has writes both ways."""


def surroundings(
    candidate: Candidate, names: Collection[str]
) -> Iterator[contextlib.AbstractContextManager[Candidate]]:
    """Yield contexts in which code finds its surroundings otherwise: libraries without what it asks for by
    ``hasattr``, and each flag of its module at its other value. names: of all that the code reads."""
    if "hasattr" in names:
        yield without_libraries(candidate)
    for name, value in list(_globals_of(candidate).items()):
        if isinstance(value, bool) and name in names:
            yield _with_module_name(candidate, name, not value)


def without_libraries(candidate: Candidate) -> contextlib.AbstractContextManager[Candidate]:
    """Return a context in which libraries lack whatever the module of a candidate asks for by ``hasattr``."""
    return _with_module_name(candidate, "hasattr", _lacks)


def _lacks(thing: Any, name: str) -> bool:
    return hasattr(thing, name) and not inspect.ismodule(thing)


def call_without_libraries(function: Callable[..., Any], candidate: Candidate) -> Callable[..., Any]:
    """Return the function of a candidate with libraries lacking, in each call, what its module asks for."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        with without_libraries(candidate):
            return function(*arguments, **options)

    call.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def _with_module_name(candidate: Candidate, name: str, value: Any) -> Iterator[Candidate]:
    """Let a name of the module stand for this value, for all that is made and called inside."""
    own = _globals_of(candidate)
    before = {name: own[name]} if name in own else {}
    with _without_instances():
        own[name] = value
        try:
            yield candidate
        finally:
            del own[name]
            own.update(before)


def _globals_of(candidate: Candidate) -> dict[str, Any]:
    """Return the names of the module by which the code of a candidate is run."""
    thing = candidate.thing
    own = (x for kind in inspect.getmro(thing) for x in vars(kind).values()) if candidate.is_class else [thing]
    functions = (inspect.unwrap(one) for one in own if inspect.isfunction(one))
    return next((one.__globals__ for one in functions), {})


def _find_method(kind: type, argument: str) -> str:
    """Return the method that is called with an argument of this name, the usual ones first."""
    own = [name for name, x in inspect.getmembers_static(kind, inspect.isfunction) if name[:1] != "_"]
    listed = ("forward", "__call__", *own)
    methods = {name: inspect.getattr_static(kind, name, None) for name in listed}
    taking = (name for name, x in methods.items() if x is not None and argument in _arguments(x))
    return next(taking, "forward" if methods["forward"] is not None else "__call__")


def _arguments(function: Any) -> Mapping[str, Any]:
    return inspect.signature(function).parameters if inspect.isfunction(function) else {}


def override_argument(function: Callable[..., Any], name: str, value: Any) -> Callable[..., Any]:
    """Return the function with one of its arguments always at this value."""
    signature = inspect.signature(function)
    argument, _, entry = name.partition(".")

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.arguments[argument] = _with_entry(bound.arguments[argument], entry, value) if entry else value
        return function(*bound.args, **bound.kwargs)

    return call


def _with_entry(config: Any, entry: str, value: Any) -> Any:
    """Return a copy of a configuration with another value of an entry, from which it may compute others."""
    if dataclasses.is_dataclass(config) and entry in (one.name for one in dataclasses.fields(config) if one.init):
        with untraced():
            return dataclasses.replace(config, **{entry: value})  # type: ignore[type-var]
    changed = copy.copy(config)
    if isinstance(changed, Mapping):
        changed[entry] = value  # type: ignore[index]
    else:
        object.__setattr__(changed, entry, value)
    return changed


@contextlib.contextmanager
def _without_instances() -> Iterator[None]:
    stores: tuple[Any, ...] = (holding._HOLDERS, building._MADE, construction._LOOKED_AT)
    kept = [copy.copy(store) for store in stores]
    for store in stores:
        store.clear()
    try:
        yield
    finally:
        for store, before in zip(stores, kept, strict=True):
            store.clear()
            store.update(before)
