"""Claims of an implementation: the ``CLAIMS`` dict.

An unknown key is an error: a claim under it would count for nothing. An unknown value is left out with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from veriformer.spec.suggestion import meant
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.features import GRADIENTS, features
from veriformer.verify.contract.signatures import OPTIONAL, POSITIONAL
from veriformer.verify.results.foreign import plain
from veriformer.verify.targets.claim_keys import CONVENTIONS, check_key, check_keys
from veriformer.verify.targets.kinds import MODELS, TRAINERS

KNOWN_CONVENTIONS: dict[str, tuple[str, ...]] = {key: one.values for key, one in CONVENTIONS.items()}
"""Conventions a target may claim, the contract's own value first; an empty tuple admits any value."""

_PROVIDED = (*POSITIONAL, *MODELS, *TRAINERS)
"""Everything that a target may provide."""


class ClaimsWarning(UserWarning):
    """A value in ``CLAIMS`` that means nothing, named so that it can be mended."""


@dataclass(frozen=True)
class Claims:
    """The claims that could be understood.

    dtypes: record names of the formats promised per operation; ``"*"`` stands for every operation not named.
    devices: device names promised, empty for any.
    not_provided: operation, ``operation.argument`` or ``operation.gradient`` to the reason why it is left out.
    provides: operation to the features that it provides, whatever a probe finds: calls that have them are judged.
    conventions: convention to the value claimed. constants: operation to the values, by argument, that are computed
    with where the signature hides them: what a probe would measure otherwise.
    raw: the dict as the implementation carries it, for the record.
    asked: the conventions that checks have asked for.
    """

    dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    not_provided: Mapping[str, str] = field(default_factory=dict)
    provides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    conventions: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set, compare=False)

    def convention(self, key: str) -> str:
        """Return the value of a convention: claimed, or the contract's own."""
        self.asked.add(key)
        return self.conventions.get(key, KNOWN_CONVENTIONS[key][0])

    def deviates(self, key: str) -> bool:
        """Return whether a convention other than the contract's is claimed."""
        return self.convention(key) != KNOWN_CONVENTIONS[key][0]

    def claiming(self, convention: str, value: str) -> Claims:
        """Return a copy with one convention claimed besides."""
        return replace(self, conventions={**self.conventions, convention: value})

    def promises(self, operation: str, dtype: str) -> bool:
        """Return whether results in this dtype are promised for the operation."""
        promised = self.dtypes.get(operation, self.dtypes.get("*"))
        return promised is None or dtype in promised


def read_claims(raw: object) -> Claims:
    """Read ``CLAIMS``.

    Raises TargetError for a key that is not known, with those that come close. A value that cannot be understood is
    left out with a ClaimsWarning that names it.
    """
    raw = plain(raw)
    if raw is None:
        return Claims()
    if not isinstance(raw, Mapping):
        _warn(f"CLAIMS: expected a dict, got {type(raw).__name__}; nothing of it is used")
        return Claims()
    check_keys(raw)
    return Claims(
        dtypes=_dtypes(raw.get("dtypes")),
        devices=tuple(_strings(raw.get("devices"), "devices")),
        not_provided=_reasons(raw.get("not_provided")),
        provides=_provided(raw.get("provides")),
        conventions=_conventions(raw.get("conventions")),
        constants=_constants(raw.get("conventions")),
        raw=dict(raw),
    )


def _warn(message: str) -> None:
    warnings.warn(message, ClaimsWarning, stacklevel=4)


def _strings(value: object, key: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        _warn(f"CLAIMS[{key!r}]: expected a list of names, got {value!r}")
        return []
    return list(value)


def _dtypes(value: object) -> dict[str, tuple[str, ...]]:
    per_operation = value if isinstance(value, Mapping) else {"*": value}
    claimed = {}
    for operation, names in per_operation.items():
        check_key("CLAIMS['dtypes']", operation, ("*", *_PROVIDED))
        known = [_dtype(name) for name in _strings(names, f"dtypes.{operation}")]
        if any(known):
            claimed[str(operation)] = tuple(name for name in known if name)
    return claimed


def _dtype(name: str) -> str:
    try:
        return dtypes.canonical(name)
    except ValueError as error:
        _warn(f"CLAIMS['dtypes']: {error}")
        return ""


def _reasons(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _warn(f"CLAIMS['not_provided']: expected a dict of operation to reason, got {value!r}")
        return {}
    for key in map(str, value):
        operation, dot, part = key.partition(".")
        parts = (*OPTIONAL.get(operation, ()), "gradient")
        check_key("CLAIMS['not_provided']", operation, _PROVIDED)
        if dot:
            check_key(f"CLAIMS['not_provided'][{key!r}]: after {operation}", part, parts)
    return {str(operation): str(reason) for operation, reason in value.items()}


def _provided(value: object) -> dict[str, tuple[str, ...]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _warn(f"CLAIMS['provides']: expected a dict of operation to a list of features, got {value!r}")
        return {}
    claimed = {}
    for operation, names in value.items():
        check_key("CLAIMS['provides']", operation, [name for name in POSITIONAL if features(name)])
        known = {*(one.name for one in features(operation)), GRADIENTS, *dtypes.NAMES}
        listed = _strings(names, f"provides.{operation}")
        for name in (name for label in listed for name in label.split(" + ") if name not in known):
            _warn(f"CLAIMS['provides'][{operation!r}]: unknown feature {name!r}{meant(name, known)}")
        claimed[str(operation)] = tuple(listed)
    return claimed


def is_constant(key: object) -> bool:
    """Return whether a key of the conventions names an optional argument of an operation: ``rms_norm.eps``."""
    operation, _, argument = str(key).partition(".")
    return key not in KNOWN_CONVENTIONS and argument in OPTIONAL.get(operation, {})


def _constants(value: object) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, constant in value.items() if isinstance(value, Mapping) else ():
        if is_constant(key):
            operation, _, argument = str(key).partition(".")
            found.setdefault(operation, {})[argument] = constant
    return found


def _conventions(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        _warn(f"CLAIMS['conventions']: expected a dict of convention to value, got {value!r}")
        return {}
    claimed = {}
    for key, choice in value.items():
        if is_constant(key):
            continue
        check_key("CLAIMS['conventions']", key, KNOWN_CONVENTIONS)
        if KNOWN_CONVENTIONS[key] and choice not in KNOWN_CONVENTIONS[key]:
            _warn(f"CLAIMS['conventions'][{key!r}]: expected one of {KNOWN_CONVENTIONS[key]}, got {choice!r}")
        else:
            claimed[key] = choice
    return claimed
