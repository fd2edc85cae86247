"""Plan of a run, as plain data that every process of it can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriformer.spec.requirement import Weight
from veriformer.verify.catalogue.selection import select
from veriformer.verify.contract import formats
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.results.domain import Domain

if TYPE_CHECKING:
    from veriformer.verify.judging.row import CheckRun
    from veriformer.verify.targets.target import Target

_NOT_ASKED = ("target", "stored", "part")
"""Keys of a plan that a command line does not determine by itself: of a problem with its solution, the solution is the
target."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Plan of one run. Runs with equal plans give equal results, timings aside.

    target: the word that loads the implementation. only: selections, empty for everything. seed: text mixed into
        every row's seed.
    timeout_s: seconds a row may take, None for the profile's own. strict: whether advice is a violation.
    fail_on: the least weight that is one. partial: whether a part that was not seen is accepted.
    stored: by key of a row, the script of a counterexample that is known, to be run first. finished: keys of the rows
        that an earlier, interrupted run has already done. domains: by operation, what a probe found out about the
        target, as in results.json. recognised: what code that was not written for the contract was recognised as.
        part: keys of the rows that are to run where other machines run the others, None
        for all of them.
    """

    target: str
    profile: str = "quick"
    only: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = formats.NAMES
    device: str = "cpu"
    seed: str = "slug"
    timeout_s: float | None = None
    strict: bool = False
    fail_on: str = Weight.FRAGILE.value
    partial: bool = False
    stored: Mapping[str, str] = field(default_factory=dict)
    finished: tuple[str, ...] = ()
    domains: Mapping[str, Any] = field(default_factory=dict)
    recognised: Mapping[str, Any] = field(default_factory=dict)
    part: tuple[str, ...] | None = None

    @property
    def effort(self) -> Profile:
        """The profile, with this plan's own time limit per row if it has one."""
        profile = PROFILES[self.profile]
        return profile if self.timeout_s is None else replace(profile, timeout_s=self.timeout_s)

    def pending(self) -> list[CheckRun]:
        """Return the rows still to run: those of this part not finished before this process started."""
        finished = set(self.finished)
        return [row for row in self.rows() if row.key not in finished]

    def rows(self) -> list[CheckRun]:
        """Return the rows of this plan's part, in the order in which results are listed."""
        part = None if self.part is None else frozenset(self.part)
        return [row for row in self.every_row() if part is None or row.key in part]

    def every_row(self) -> list[CheckRun]:
        """Return the rows of all parts, in the order in which results are listed."""
        from veriformer.verify.judging.row import plan  # which imports PyTorch; a plan itself is plain data

        return plan(select(self.only), self.dtypes, self.device)

    def operations(self) -> tuple[str, ...]:
        """Return the operations of the rows of all parts, in order: every part probes the same."""
        return tuple(dict.fromkeys(row.check.operation for row in self.every_row()))

    def request(self) -> dict[str, Any]:
        """Return the plan without the keys that differ between parts of a run, as JSON holds it."""
        own = ("finished", "domains", "recognised", "part")
        asked: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {key: value for key, value in asked.items() if key not in own}

    def within(self, target: Target) -> Target:
        """Return the target restricted to the probed domains of its operations."""
        return target.within(
            {name: Domain.from_dict(entry) for name, entry in self.domains.items()}, strict=self.strict
        )

    def save(self, path: Path) -> None:
        """Write it for the other processes."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def restore(cls, path: Path) -> Plan:
        """Read a plan written by ``save``."""
        return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Plan:
        """Read a plan from a JSON object."""
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})  # type: ignore[arg-type]

    def differences(self, other: Plan, *, asked: bool = False) -> list[str]:
        """Return the differences of two plans in words; asked: only those of the command line."""
        mine, theirs = asdict(self), asdict(other)
        found_out = ("finished", "domains", "recognised", *(_NOT_ASKED if asked else ()))
        return [
            f"{key}: {theirs[key]!r} there, {mine[key]!r} here"
            for key in mine
            if key not in found_out and mine[key] != theirs[key]
        ]
