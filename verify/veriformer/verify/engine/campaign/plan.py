"""Campaign plan: a TOML file, whose keys ``veriformer campaign --help`` shows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from veriformer.spec.suggestion import meant
from veriformer.verify.contract import formats
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.profiles import PROFILES

_LISTS = ("targets", "profiles", "dtypes", "devices", "only")
_TEXTS = ("waivers", "store", "examples")


class CampaignError(ValueError):
    """The file of a campaign cannot be used; the message has expectation and finding."""


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Plan of a campaign. store, waivers: paths; examples: where Hypothesis keeps examples."""

    targets: tuple[str, ...]
    store: Path
    profiles: tuple[str, ...] = ("quick",)
    dtypes: tuple[str, ...] = formats.NAMES
    devices: tuple[str, ...] = ("cpu",)
    only: tuple[str, ...] = ()
    strict: bool = False
    waivers: Path | None = None
    examples: str = "directory"

    def plans(self, seed: str) -> dict[str, Plan]:
        """Return a plan for every combination of target, profile and device, by a name that is stable between
        campaigns.
        """
        return {
            f"{target} {profile} {device}": Plan(
                target=target,
                profile=profile,
                only=self.only,
                dtypes=self.dtypes,
                device=device,
                seed=seed,
                strict=self.strict,
            )
            for target, profile, device in product(self.targets, self.profiles, self.devices)
        }

    @property
    def database(self) -> str:
        """Where Hypothesis keeps examples, as its workers are told."""
        folder = str((self.store / "examples").resolve())
        return folder if self.examples == "directory" else f"{self.examples} {folder}"


def read(path: Path) -> Campaign:
    """Read a campaign from a TOML file. Raises CampaignError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise CampaignError(f"{path}: {error}") from error
    return _checked(table, path)


def _checked(table: Mapping[str, Any], path: Path) -> Campaign:
    known = (*_LISTS, *_TEXTS, "strict")
    unknown = [key for key in table if key not in known]
    if unknown:
        raise CampaignError(f"{path}: unknown key {unknown[0]!r}{meant(unknown[0], known)}; known: {', '.join(known)}")
    for key in _LISTS:
        if key in table and not (isinstance(table[key], list) and all(isinstance(x, str) for x in table[key])):
            raise CampaignError(f"{path}: {key}: expected a list of words, got {table[key]!r}")
    for key in _TEXTS:
        if not isinstance(table.get(key, ""), str):
            raise CampaignError(f"{path}: {key}: expected text, got {table[key]!r}")
    if not table.get("targets"):
        raise CampaignError(f'{path}: targets: expected at least one target, got none; add targets = ["mine.py"]')
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    wrong = [name for name in given.get("profiles", ()) if name not in PROFILES]
    if wrong:
        raise CampaignError(f"{path}: profiles: expected some of {', '.join(PROFILES)}, got {wrong[0]!r}")
    try:
        given["dtypes"] = tuple(formats.canonical(name) for name in given.get("dtypes", formats.NAMES))
    except ValueError as error:
        raise CampaignError(f"{path}: dtypes: {error}") from error
    given["store"] = path.parent / given.get("store", "campaign")
    if "waivers" in given:
        given["waivers"] = path.parent / given["waivers"]
    return Campaign(**given)
