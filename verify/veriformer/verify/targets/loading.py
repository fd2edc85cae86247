"""From the word on the command line, or an object, to the target under test."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch
from torch import nn

from veriformer.verify import targets
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.results.foreign import exception_text
from veriformer.verify.targets.by_name import by_name, offers_any, other_names
from veriformer.verify.targets.claims import read_claims
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.files import loading_lines
from veriformer.verify.targets.kinds import MODELS, TRAINERS, built_model, claims_of
from veriformer.verify.targets.locating import locate
from veriformer.verify.targets.source_files import file_alone, name_of
from veriformer.verify.targets.target import Target
from veriformer.verify.targets.watch import watch_of

Recognition = Mapping[str, Any]
"""Recognised forms of a target, as JSON holds them: see ``veriformer.verify.recognition``."""


def load(spec: str, recognised: Recognition | None = None) -> Target:
    """Load a file, a dotted module, an attribute (``pkg.mod:thing``) or a name that ships with the suite.

    recognised: what was recognised of it before, which is bound again; otherwise code that was not written for the
    contract is looked at. Raises TargetError with the reason for anything that cannot be loaded, whatever it raised.
    """
    return target_of(*locate(spec), spec, recognised)


def target_of(implementation: object, loader: str, spec: str, recognised: Recognition | None = None) -> Target:
    """Return what a word stands for as a target; loader: Python lines that bind it. Raises TargetError."""
    if recognised or needs_recognition(implementation):
        lines = f"from veriformer.verify import load\n\ntarget = load({spec!r}, "
        try:
            return _recognised(implementation, spec, lines, recognised)
        except (KeyboardInterrupt, TargetError):
            raise
        except BaseException as error:
            raise TargetError(f"target {spec!r} raised {exception_text(error)} while it was looked at") from error
    target = wrap(implementation, spec=spec, loader=loader)
    return target if targets.find(spec) is not None else _watch(target, implementation)


def _watch(target: Target, found: object) -> Target:
    watch = watch_of(found)
    for name in (*POSITIONAL, *MODELS, *TRAINERS) if watch is not None else ():
        operation = target.operation(name)
        if operation is not None and watch is not None:
            watch.add_root(name, operation)
    return replace(target, watch=watch)


def wrap(
    implementation: object,
    *,
    spec: str | None = None,
    loader: str | None = None,
    recognised: Recognition | None = None,
) -> Target:
    """Wrap an object in memory as a target; code that was not written for the contract is recognised first."""
    if loader is None and needs_recognition(implementation):
        name = spec or getattr(implementation, "__qualname__", name_of(implementation))
        imported = "from veriformer.verify.targets.loading import wrap"
        lines = f"{imported}\n\n{_loader_of_object(implementation)}\ntarget = wrap(target, recognised="
        return _recognised(implementation, str(name), lines, recognised)
    implementation = built_model(implementation)
    name = spec or name_of(implementation) or type(implementation).__name__
    return Target(
        spec=str(name),
        implementation=implementation,
        claims=read_claims(claims_of(implementation)),
        version=_version(implementation),
        loader=loader or _loader_of_object(implementation),
    )


def needs_recognition(implementation: object) -> bool:
    """Return whether code was not written for the contract: a module without its names, or with more than they use, a
    class without them or a function by itself, an optimizer."""
    if isinstance(implementation, ModuleType):
        names = by_name(implementation)
        return not names or (not hasattr(implementation, "CLAIMS") and bool(other_names(implementation, names)))
    if isinstance(implementation, torch.optim.Optimizer):
        return True
    if not inspect.isclass(implementation) and not inspect.isfunction(implementation):
        return False
    try:
        inspect.signature(implementation).bind()
    except TypeError:
        return True
    except ValueError:
        return False
    if not inspect.isclass(implementation):
        return False
    return _weightless(implementation) if issubclass(implementation, nn.Module) else not offers_any(implementation)


def _weightless(kind: type[nn.Module]) -> bool:
    """Return whether modules of a class that is built without arguments hold no weights, as every whole model does."""
    try:
        with torch.random.fork_rng():
            return next(kind().parameters(), None) is None
    except Exception:  # what it raises is told where it is loaded
        return False


def _recognised(implementation: object, spec: str, lines: str, recognised: Recognition | None) -> Target:
    """Return the target of code that was not written for the contract, as recognised."""
    # Recognition draws calls and judges them, which is done above this layer: it is asked for by name.
    recognition = importlib.import_module("veriformer.verify.recognition.targets")
    target: Target = recognition.target_of(implementation, spec, lines, recognised)
    return target


def _loader_of_object(implementation: object) -> str:
    name = getattr(implementation, "__name__", "")
    if isinstance(implementation, ModuleType) and name in sys.modules:
        if (file := file_alone(implementation)) is not None:
            return loading_lines(file, "")  # which no path of searches need find
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
