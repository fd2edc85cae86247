"""Targets: the object under test, its claims, and the arguments that its signatures lack."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from veriformer.verify.contract.features import GRADIENTS
from veriformer.verify.contract.refusals import Refusals
from veriformer.verify.contract.rules import read
from veriformer.verify.contract.signatures import OPTIONAL, POSITIONAL
from veriformer.verify.results.domain import Domain
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.kinds import kind_of
from veriformer.verify.targets.watch import Watch

_UNKNOWN = Domain()


@dataclass(frozen=True)
class Target:
    """An implementation under test, with its recognition, claims and domain.

    spec: its name on the command line, or a description of an object.
    loader: Python lines that bind the name ``target`` to it, for scripts that reproduce a violation.
    domains: by operation, the result of its probe. strict: refused calls are judged nevertheless.
    recognised: the recognition of code that was not written for the contract, as JSON.
    source: that code itself, whose names may resemble the contract's.
    watch: trace of the target's own code in calls; None for targets that ship with the suite.
    changes: by operation, or ``loading``, the global state that it changed, which was put back.
    """

    spec: str
    implementation: object
    claims: Claims
    version: str | None
    loader: str
    domains: Mapping[str, Domain] = field(default_factory=dict)
    strict: bool = False
    recognised: Mapping[str, Any] = field(default_factory=dict)
    source: object = None
    watch: Watch | None = field(default=None, repr=False, compare=False)
    changes: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)
    _unsupported: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _required: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _refusals: dict[str, Refusals] = field(default_factory=dict, init=False, repr=False, compare=False)

    def operation(self, name: str) -> Callable[..., Any] | None:
        """Return the operation of that name; None where the implementation lacks it."""
        if isinstance(self.implementation, nn.Module):  # its other attributes are its own affair
            return self.implementation if name == kind_of(self.implementation) else None
        found = getattr(self.implementation, name, None)
        return found if callable(found) else None

    def changed(self, operation: str) -> Callable[[str], None]:
        """Return a callback that notes a change of global state by a call of this operation."""

        def note(what: str) -> None:
            known = self.changes.setdefault(operation, [])
            if what not in known:
                known.append(what)

        return note

    def watching(self, operation: str) -> contextlib.AbstractContextManager[Any]:
        """Note what of the code runs inside for this operation, where it is watched."""
        return contextlib.nullcontext() if self.watch is None else self.watch.watching(operation)

    def names(self) -> list[str]:
        """Return the public callables of the implementation that its own package defines, but for the contract's."""
        source = self.implementation if self.source is None else self.source
        own = {name: x for name, x in getattr(source, "__dict__", {}).items() if callable(x) and name[:1] != "_"}
        package = _package(getattr(source, "__name__", None))
        return [
            name
            for name, x in own.items()
            if name not in POSITIONAL and package in ("", _package(getattr(x, "__module__", None)))
        ]

    def unsupported_args(self, operation: str) -> frozenset[str]:
        """Return an operation's optional arguments that the signature lacks, or the claims."""
        if operation not in self._unsupported:
            names = OPTIONAL.get(operation, {}).keys()
            if operation == "cached_attention":  # it is asked for together with the cache that it works on
                missing = _missing(self.operation(operation), names - OPTIONAL["kv_cache"].keys())
                missing |= self.unsupported_args("kv_cache")
            else:
                missing = _missing(self.operation(operation), names)
            claimed = {name for name in names if f"{operation}.{name}" in self.claims.not_provided}
            self._unsupported[operation] = missing | claimed
        return self._unsupported[operation]

    def requires(self, operation: str) -> frozenset[str]:
        """Return the contract's optional arguments that the signature requires; with --strict it may require none."""
        if operation not in self._required:
            self._required[operation] = self._demanded(operation)
        return self._required[operation]

    def _demanded(self, operation: str) -> frozenset[str]:
        if self.strict or operation == "cached_attention":
            return frozenset()
        function = self.operation(operation)
        parameters = {} if function is None else _parameters(function)
        single = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        names = {_AXIS if p.name == _AXIS_OF_STAND_INS else p.name for p in single if p.default is p.empty}
        demanded = names & OPTIONAL.get(operation, {}).keys()
        provided = self.claims.provides.get(operation, ())
        return frozenset(name for name in demanded if f"the default of {name}" not in provided)

    def hides(self, operation: str) -> frozenset[str]:
        """Return the optional arguments whose default is not the contract's: absent, or another in the signature."""
        usual, parameters = OPTIONAL.get(operation, {}), _signature(self.operation(operation))
        shown = {name: p.default for name, p in parameters.items() if name in usual and p.default is not p.empty}
        return self.unsupported_args(operation) | {
            name for name, default in shown.items() if not _same(default, usual[name])
        }

    def shows(self, operation: str) -> dict[str, Any]:
        """Return the signature's defaults, other than None, of optional arguments where the contract has others."""
        names, parameters = (
            self.hides(operation) - self.unsupported_args(operation),
            _signature(self.operation(operation)),
        )
        shown = {name: parameters[name].default for name in names if name in parameters}
        return {name: default for name, default in shown.items() if default is not None}

    def stated_refusals(self, operation: str) -> Mapping[str, str]:
        """Return the form's attribute ``refused``: by feature, the reason why the operation lacks it."""
        found: Mapping[str, str] = getattr(self.operation(operation), "refused", {})
        return found

    def differentiates(self, operation: str) -> bool:
        """Return whether gradients of an operation are promised, as they are unless claimed otherwise or found
        lacking."""
        claimed = f"{operation}.gradient" in self.claims.not_provided
        return not claimed and GRADIENTS not in self.refusals(operation).messages

    def within(self, domains: Mapping[str, Domain], *, strict: bool = False) -> Target:
        """Return a copy with the measured domains; strict: held to all of the contract."""
        return replace(self, domains=domains, strict=strict)

    def domain(self, operation: str) -> Domain:
        """Return the measured domain of an operation, empty where it was not probed, with the claimed constants."""
        found = self.domains.get(operation, _UNKNOWN)
        claimed = self.claims.constants.get(operation)
        return replace(found, constants={**found.constants, **claimed}) if claimed else found

    def refusals(self, operation: str) -> Refusals:
        """Return the features and sizes that the operation refuses, but for those it claims to provide; empty where
        strict."""
        if operation not in self._refusals:
            provided = self.claims.provides.get(operation, ())
            refused = {} if self.strict else {**self.stated_refusals(operation), **self.domain(operation).refused}
            kept = {label: message for label, message in refused.items() if label not in provided}
            rules = () if self.strict else tuple(map(read, self.domain(operation).rules))
            self._refusals[operation] = Refusals(operation, kept, rules)
        return self._refusals[operation]


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


_AXIS, _AXIS_OF_STAND_INS = "dim", "names"
"""PyTorch's stand-ins name an axis so that may also be given by a name."""


def _signature(function: Callable[..., Any] | None) -> Mapping[str, inspect.Parameter]:
    """Return the parameters in a signature; nothing of no function, or of a built-in without one."""
    try:
        return {} if function is None else inspect.signature(function).parameters
    except (ValueError, TypeError):
        return {}


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function; of PyTorch's built-ins, which have no signature, those of the stand-in for
    tests of ``__torch_function__``: it lacks some options, but has all that are required."""
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        stand_in = torch.overrides.get_testing_overrides().get(function)
        return {} if stand_in is None else inspect.signature(stand_in).parameters


def _package(module: object) -> str:
    """Return the package of a module by its name; empty for what has none."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def _missing(function: Callable[..., Any] | None, names: Collection[str]) -> frozenset[str]:
    parameters = _signature(function)
    if not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return frozenset()
    offered = parameters.keys() - ({"window"} if "is_causal" not in parameters and "is_causal" in names else set())
    return frozenset(names) - offered  # a window is refused without causality
