"""Failures of an operation due to another one that it is given: attention over a cache that loses tokens."""

from __future__ import annotations

import functools
import importlib  # a sound implementation: needed only where something fails
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from torch import nn

from veriformer.spec.requirement import Weight
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.target import Target

_ORDER = list(Weight)

PARTS = {"cached_attention": "kv_cache"}
"""By operation, the one of the same implementation whose results it works on."""


class _WithPart:
    """An implementation with one operation exchanged for a sound one."""

    def __init__(self, implementation: object, name: str, sound: Any) -> None:
        self._implementation = implementation
        setattr(self, name, sound)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._implementation, name)


def with_sound_part(operation: str, target: Target) -> Target | None:
    """The target with a sound implementation of what the operation works on; None where it works on nothing."""
    part = PARTS.get(operation)
    theirs = None if part is None or isinstance(target.implementation, nn.Module) else target.operation(part)
    if part is None or theirs is None:
        return None
    sound = getattr(importlib.import_module("veriformer.verify.targets.impl").reference, part)
    shown = functools.wraps(theirs)(lambda *given, **options: sound(*given, **options))  # nothing more is asked of it
    return replace(target, implementation=_WithPart(target.implementation, part, shown))


def put_together(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those that follow from another operation under the gravest of that operation, where it has any."""
    listed = list(findings)
    of: dict[str, Finding] = {}
    for one in sorted((one for one in listed if not one.follows), key=lambda one: _ORDER.index(one.weight)):
        of.setdefault(one.operation, one)
    kept = [one for one in listed if one.follows not in of]
    return [_with(one, [other for other in listed if other.follows and of.get(other.follows) is one]) for one in kept]


def _with(finding: Finding, others: Sequence[Finding]) -> Finding:
    def each(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for one in (finding, *others) for value in getattr(one, name)))

    if not others:
        return finding
    return replace(finding, dtypes=each("dtypes"), requirements=each("requirements"), rows=each("rows"))
