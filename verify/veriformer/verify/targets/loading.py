"""From the word on the command line to the object under test."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from veriformer.verify import targets
from veriformer.verify.targets.claims import read_claims
from veriformer.verify.targets.model_kinds import claims_of, provided
from veriformer.verify.targets.portable import loading_lines
from veriformer.verify.targets.target import Target


class TargetError(Exception):
    """The target cannot be loaded; the message says what was expected, what was found and what to do."""


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
    module, lines = _of_file(place, attribute) if place.endswith(".py") else _module(place, attribute, spec)
    if not attribute:
        return module, lines
    if not hasattr(module, attribute):
        raise TargetError(f"target {spec!r}: {place} has no attribute {attribute!r}")
    return getattr(module, attribute), lines


def _of_file(place: str, attribute: str) -> tuple[ModuleType, str]:
    return _file(place), loading_lines(Path(place).resolve(), attribute)


def _file(place: str) -> ModuleType:
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
    return module


def _module(place: str, attribute: str, spec: str) -> tuple[ModuleType, str]:
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
    loaded = f"importlib.import_module({place!r})"
    return module, f"import importlib\n\ntarget = {loaded}{'.' if attribute else ''}{attribute}"


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
