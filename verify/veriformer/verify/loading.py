"""From the word on the command line to the object under test."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from veriformer.verify import targets
from veriformer.verify.claims import Claims, read_claims
from veriformer.verify.contract import OPTIONAL
from veriformer.verify.models.kinds import claims_of, kind_of, provided


class TargetError(Exception):
    """The target cannot be loaded; the message says what was expected, what was found and what to do."""


@dataclass(frozen=True)
class Target:
    """An implementation under test, with what is known about it.

    spec: the word it was asked for by, or a description where it was handed over as an object.
    loader: Python lines that bind the name ``target`` to it, for scripts that reproduce a violation.
    """

    spec: str
    implementation: object
    claims: Claims
    version: str | None
    loader: str
    _lacking: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def operation(self, name: str) -> Callable[..., Any] | None:
        """The operation of that name, or None where the implementation lacks it."""
        if isinstance(self.implementation, nn.Module):  # its other attributes are its own affair
            return self.implementation if name == kind_of(self.implementation) else None
        found = getattr(self.implementation, name, None)
        return found if callable(found) else None

    def lacks(self, operation: str) -> frozenset[str]:
        """The optional arguments of an operation that the implementation's signature leaves out, or its claims."""
        if operation not in self._lacking:
            names = OPTIONAL.get(operation, {}).keys()
            if operation == "cached_attention":  # it is asked for together with the cache that it works on
                missing = _missing(self.operation(operation), names - OPTIONAL["kv_cache"].keys())
                missing |= self.lacks("kv_cache")
            else:
                missing = _missing(self.operation(operation), names)
            claimed = {name for name in names if f"{operation}.{name}" in self.claims.not_provided}
            self._lacking[operation] = missing | claimed
        return self._lacking[operation]

    def differentiates(self, operation: str) -> bool:
        """Whether gradients of an operation are promised, as they are unless claimed otherwise."""
        return f"{operation}.gradient" not in self.claims.not_provided


def _missing(function: Callable[..., Any] | None, names: Collection[str]) -> frozenset[str]:
    try:
        parameters = inspect.signature(function).parameters if function is not None else {}
    except (ValueError, TypeError):  # a built-in without one
        return frozenset()
    if not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return frozenset()
    offered = parameters.keys() - ({"window"} if "is_causal" not in parameters and "is_causal" in names else set())
    return frozenset(names) - offered  # a window is refused without causality


def load(spec: str) -> Target:
    """Load a file, a dotted module, an attribute (``pkg.mod:thing``) or a name that ships with the suite.

    Raises TargetError with the reason for anything that cannot be loaded, whatever it raised.
    """
    try:
        implementation, loader = _resolve(spec)
    except TargetError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(f"target {spec!r} raised {type(error).__name__} while it was loaded: {error}") from error
    return wrap(implementation, spec=spec, loader=loader)


def wrap(implementation: object, *, spec: str | None = None, loader: str | None = None) -> Target:
    """An object that is already in memory, as a target."""
    implementation = provided(implementation)
    name = spec or getattr(implementation, "__name__", None) or type(implementation).__name__
    return Target(
        spec=str(name),
        implementation=implementation,
        claims=read_claims(claims_of(implementation)),
        version=_version(implementation),
        loader=loader or _loader_of_object(implementation),
    )


def _resolve(spec: str) -> tuple[object, str]:
    shipped = targets.find(spec)
    if shipped is not None:
        return shipped(), f"from veriformer.verify import load\n\ntarget = load({spec!r}).implementation"
    place, _, attribute = spec.partition(":") if not Path(spec).exists() else (spec, "", "")
    module, lines = _file(place) if place.endswith(".py") else _module(place, spec)
    if not attribute:
        return module, lines.format(bind="target")
    if not hasattr(module, attribute):
        raise TargetError(f"target {spec!r}: {place} has no attribute {attribute!r}")
    return getattr(module, attribute), lines.format(bind="module") + f"\ntarget = module.{attribute}"


def _file(place: str) -> tuple[ModuleType, str]:
    path = Path(place).resolve()
    if not path.is_file():
        raise TargetError(f"target {place!r}: no such file (looked at {path})")
    found = importlib.util.spec_from_file_location(path.stem, path)
    if found is None or found.loader is None:
        raise TargetError(f"target {place!r}: not a Python file")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.parent))  # a file may import its neighbours, as a script may
    sys.modules.setdefault(path.stem, module)
    found.loader.exec_module(module)
    lines = (
        "import importlib.util\nimport sys\n\n"
        f"sys.path.insert(0, {str(path.parent)!r})\n"
        f"spec = importlib.util.spec_from_file_location({path.stem!r}, {str(path)!r})\n"
        "{bind} = importlib.util.module_from_spec(spec)\nspec.loader.exec_module({bind})"
    )
    return module, lines


def _module(place: str, spec: str) -> tuple[ModuleType, str]:
    if not all(part.isidentifier() for part in place.split(".")):
        raise TargetError(_unknown(spec))
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise TargetError(_unknown(spec)) from error
        raise
    return module, f"import importlib\n\n{{bind}} = importlib.import_module({place!r})"


def _unknown(spec: str) -> str:
    return (
        f"target {spec!r}: expected a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing) "
        f"or a name that ships with the suite ({', '.join(targets.names())})"
    )


def _loader_of_object(implementation: object) -> str:
    name = getattr(implementation, "__name__", "")
    if isinstance(implementation, ModuleType) and name in sys.modules:
        return f"import importlib\n\ntarget = importlib.import_module({name!r})"
    return "target = ...  # put the implementation under test here: it was handed over as an object"


def _version(implementation: object) -> str | None:
    own = getattr(implementation, "__version__", None)
    if isinstance(own, str):
        return own
    top = getattr(implementation, "__name__", "").partition(".")[0]
    try:
        return importlib.metadata.version(top) if top else None
    except importlib.metadata.PackageNotFoundError:
        return None
