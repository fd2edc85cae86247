"""A target as it travels to another machine, where it lies in a folder of its own and is known by its name here."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from veriformer.verify.targets.files import loading_lines, place_of, sources
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.target import Target


@dataclass(frozen=True)
class Shipped:
    """Data that a worker needs to load a target.

    spec: its name here. there: the name in the folder where its files lie there. loader: the lines that load it in a
    script, where they name a file of this machine; else None.
    """

    spec: str
    there: str
    loader: str | None = None

    def load(self, recognised: Mapping[str, Any] | None = None) -> Target:
        """Load it there, under its name here. recognised: what was recognised of it before. Raises TargetError."""
        target = load(self.there, recognised or None)
        return replace(target, spec=self.spec, loader=self.loader or target.loader)


@dataclass(frozen=True)
class Parcel:
    """A target with its files, and the version of the distribution that it is installed from, if it is."""

    shipped: Shipped
    files: Mapping[str, bytes] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


def parcel(spec: str) -> Parcel:
    """Return the files and versions with which a target can be loaded elsewhere."""
    place = place_of(spec)
    if place.endswith(".py"):
        path = Path(place).resolve()
        attribute = spec[len(place) :].removeprefix(":")
        there = f"{path.name}:{attribute}" if attribute else path.name
        return Parcel(Shipped(spec, there, loading_lines(path, attribute)), sources(spec))
    files = sources(spec)
    return Parcel(Shipped(spec, spec), files, {} if files else _installed(place))


def _installed(place: str) -> dict[str, str]:
    top = place.partition(".")[0]
    for distribution in importlib.metadata.packages_distributions().get(top, ()) if top else ():
        return {distribution: importlib.metadata.version(distribution)}
    return {}
