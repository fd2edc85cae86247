"""The generic mutants as records: a fixed share of every function's edits, the same on every machine."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from veriformer.verify.mutants.generic import reach
from veriformer.verify.mutants.generic.rebuilding import rebuilt
from veriformer.verify.mutants.generic.sites import Site, edited, sites

PER_FUNCTION = 3
"""Edits per function that are run: enough for every operator to come up many times."""

_NOT_OURS_TO_JUDGE = ("flash", "models", "training", "interop")
"""Folders of the package that no operation's check reaches."""

_OF_WHOLE_MODELS = ("rewind", "grow")
"""Methods of caches that are for whole models, which take tokens back, and do not know how many will come."""


@dataclass(frozen=True)
class GenericMutant:
    """Our implementation with one edit. entries: the operations that rest on what is edited, nearest first."""

    site: Site
    entries: tuple[str, ...]

    @property
    def identifier(self) -> str:
        """The edit in words: module, function, before and after."""
        return self.site.identifier

    @property
    def title(self) -> str:
        """The operator and the line."""
        return f"{self.site.operator}, line {self.site.line}"

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that it provides."""
        return tuple(entry.partition("/")[0] for entry in self.entries)

    def build(self) -> object:
        """Return the operations of the package with the edit made. Raises whatever importing it raises."""
        tree = edited(copy.deepcopy(reach.tree(self.site.module)), self.site)
        return reach.implementation(rebuilt(self.site.module, tree), self.entries)


@cache
def generic_mutants() -> tuple[GenericMutant, ...]:
    """Of every function's edits the few that come first by the hash of their names, where an operation rests on it."""
    found: list[GenericMutant] = []
    for module in reach.modules():
        if any(f".{folder}" in module for folder in _NOT_OURS_TO_JUDGE):
            continue
        by_function: dict[str, list[Site]] = {}
        for site in sites(module, reach.tree(module)):
            by_function.setdefault(site.function, []).append(site)
        for function, several in by_function.items():
            entries = reach.resting_on(module, function.partition(".")[0])
            if not entries or function.rpartition(".")[2] in _OF_WHOLE_MODELS:
                continue  # for whole models and for measuring alone
            found += [GenericMutant(site, entries) for site in sorted(several, key=_order)[:PER_FUNCTION]]
    return tuple(found)


def named(identifier: str) -> GenericMutant:
    """Return the mutant of that name. Raises LookupError where no such edit is among those run."""
    for mutant in generic_mutants():
        if mutant.identifier == identifier:
            return mutant
    raise LookupError(f"generic {identifier!r}: no such edit; veriformer mutants generic lists them")


@cache
def survivors() -> Mapping[str, str]:
    """Survivors that were looked at, each with the reason: why the edit changes nothing, or what is missing."""
    text = resources.files(__package__).joinpath("survivors.json").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def _order(site: Site) -> bytes:
    return hashlib.sha256(site.identifier.encode()).digest()
