"""Candidates of a target: public functions and classes of a file, a package, a class or an object."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import nn

from veriformer.verify.forms.adapted import candidate_of
from veriformer.verify.forms.autograd_functions import is_autograd_function
from veriformer.verify.forms.candidate import Candidate, words


def candidates(target: object) -> list[Candidate]:
    """Return the candidates of a module (and of a package's modules), or a single function, class or object."""
    if isinstance(target, ModuleType):
        return [*_of_module(target, ""), *_of_package(target)]
    module = inspect.getmodule(target) if callable(target) else None
    name = getattr(target, "__qualname__", type(target).__name__)
    return [candidate_of(name, target, module)]


def _of_module(module: ModuleType, prefix: str) -> Iterator[Candidate]:
    """Yield the module itself and its own definitions in their order.

    Functions of autograd come last: where a function of the module calls one, that is the one that people call.
    """
    yield Candidate(prefix, module, module)
    for name, x in sorted(vars(module).items(), key=lambda pair: is_autograd_function(pair[1])):
        if name.startswith("__") or not callable(x):
            continue
        if getattr(x, "__module__", None) == module.__name__ or _is_module_callable(x, module):
            whole = f"{prefix}.{name}" if prefix else name
            yield candidate_of(whole, x, module)
            yield from (candidate_of(f"{whole}.{own}", method, module) for own, method in _methods(x))


_OF_METHODS = (
    *({"softmax"}, {"gelu"}, {"silu"}, {"swish"}, {"layer", "norm"}, {"layernorm"}, {"rms", "norm"}, {"rmsnorm"}),
    *({"logsumexp"}, {"cross", "entropy"}),
)
"""Words of a method that is an operation by itself, whatever its class is."""


def _methods(kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield the methods of a plain class that are operations by name, by their names: bound, or static."""
    own = {name: x for name, x in vars(kind).items() if name[:1] != "_"} if inspect.isclass(kind) else {}
    named = [name for name in own if any(one == set(words(name)) for one in _OF_METHODS)]
    if not named or issubclass(kind, nn.Module | torch.autograd.Function | torch.optim.Optimizer):
        return
    for name in named:
        found = method_of(kind, name)
        if found is not None:
            yield name, found


def method_of(kind: Any, name: str) -> Any:
    """Return a method of a class that is built from nothing, or a static one; None where there is none such."""
    if isinstance(vars(kind).get(name), staticmethod | classmethod):
        return getattr(kind, name)
    try:
        found = getattr(kind(), name)
    except Exception:  # it is built from something
        return None
    return found if inspect.isroutine(found) else None


def _is_module_callable(x: Any, module: ModuleType) -> bool:
    """Return whether a callable object, such as a compiled or wrapped function, stands for a function of this
    module."""
    inner = inspect.unwrap(x) if callable(x) and not inspect.isclass(x) else x
    return inner is not x and getattr(inner, "__module__", None) == module.__name__


def _of_package(package: ModuleType) -> Iterator[Candidate]:
    """Yield the candidates of a package's modules; one that cannot be imported has none."""
    for found in pkgutil.walk_packages(
        getattr(package, "__path__", ()), f"{package.__name__}.", onerror=lambda _: None
    ):
        try:
            module = importlib.import_module(found.name)
        except Exception:  # what it needs may not be there
            continue
        yield from _of_module(module, found.name.removeprefix(f"{package.__name__}."))


def find_candidate(target: object, name: str) -> Candidate:
    """Return the candidate of this name. Raises LookupError where there is none."""
    if not isinstance(target, ModuleType) or not name:
        return candidate_of(name, target, target if isinstance(target, ModuleType) else inspect.getmodule(target))
    module, rest = target, name
    head, _, method = name.rpartition(".")
    kind = getattr(module, head, None)
    if inspect.isclass(kind):
        return candidate_of(name, method_of(kind, method), module)
    while ("." in rest and not hasattr(module, rest.partition(".")[0])) or "." in rest:
        head, _, rest = rest.partition(".")
        module = importlib.import_module(f"{module.__name__}.{head}")
    if not hasattr(module, rest):
        if hasattr(module, "__path__"):
            found = importlib.import_module(f"{module.__name__}.{rest}")
            return Candidate(name, found, found)
        raise LookupError(f"{getattr(module, '__name__', module)} has no {rest!r}")
    return candidate_of(name, getattr(module, rest), module)
