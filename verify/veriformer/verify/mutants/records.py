"""Records of mutants, variants and sabotage adapters, which build implementations on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType, SimpleNamespace
from typing import Any

from veriformer.verify.mutants.combinators import Fault, faulty
from veriformer.verify.targets.argument_validation import RawOp, with_validation


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A correct implementation with one fault that public code once had.

    identifier, title, link, area: of the bug, as ``known_bugs.json`` has them.
    faults: by operation, what makes ours the wrong one; it provides no others.
    dtypes: the formats in which the fault shows.
    """

    identifier: str
    title: str
    link: str
    area: str
    faults: Mapping[str, Fault]
    dtypes: tuple[str, ...]

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that carry the fault."""
        return tuple(self.faults)

    def build(self) -> object:
        """Return the implementation: the faulty operations behind the contract's argument checks."""
        return SimpleNamespace(**{name: faulty(name, fault) for name, fault in self.faults.items()})


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A correct implementation that goes another way, which the suite must not accuse.

    title: what it does otherwise. link: where it was once reported as a bug, if it was.
    claims: conventions in which it differs from the contract, and says so.
    """

    identifier: str
    title: str
    kernels: Mapping[str, RawOp]
    link: str | None = None
    claims: Mapping[str, Any] | None = None

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations it provides."""
        return tuple(self.kernels)

    def build(self) -> object:
        """Return the implementation, with its claims."""
        return with_validation(self.claims, **self.kernels)


def variant(
    identifier: str,
    title: str,
    kernels: Mapping[str, RawOp] = MappingProxyType({}),
    *,
    link: str | None = None,
    claims: Mapping[str, Any] | None = None,
    **others: RawOp,
) -> Variant:
    """Return the variant of these kernels, and of others by the names of their operations."""
    return Variant(identifier=identifier, title=title, kernels={**kernels, **others}, link=link, claims=claims)


@dataclass(frozen=True, kw_only=True)
class Sabotage:
    """An adapter that computes nothing, under every operation's name.

    exempt: requirements of a kind that it claims and yet keeps to, each with the reason.
    """

    identifier: str
    title: str
    make: Callable[[], object]
    exempt: Mapping[str, str]

    def build(self) -> object:
        """Return the adapter."""
        return self.make()


@cache
def known_bugs() -> tuple[Mapping[str, Any], ...]:
    """Return the public bugs of these operations, each with the mutants that repeat it or the reason why none can."""
    text = resources.files("veriformer.verify.mutants").joinpath("known_bugs.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))
