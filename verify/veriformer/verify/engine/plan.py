"""What a run is to do, as plain data that every process of it can read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from veriformer.verify.catalogue.selection import select
from veriformer.verify.contract import dtypes
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.engine.row import Row, plan


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run. Two runs with equal plans give equal results, timings aside.

    target: the word that loads the implementation. only: selections, empty for everything. seed: text mixed into
        every row's seed.
    timeout_s: seconds a row may take, None for the profile's own. strict: whether advice is a violation.
    stored: by key of a row, the script of a counterexample that is known, to be run first. finished: keys of the rows
        that an earlier, interrupted run has already done.
    """

    target: str
    profile: str = "quick"
    only: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = dtypes.NAMES
    device: str = "cpu"
    seed: str = "slug"
    timeout_s: float | None = None
    strict: bool = False
    stored: Mapping[str, str] = field(default_factory=dict)
    finished: tuple[str, ...] = ()

    @property
    def effort(self) -> Profile:
        """The profile, with this plan's own time limit per row if it has one."""
        profile = PROFILES[self.profile]
        return profile if self.timeout_s is None else replace(profile, timeout_s=self.timeout_s)

    def pending(self) -> list[Row]:
        """The rows that are still to run: all but those finished before this process was started."""
        finished = set(self.finished)
        return [row for row in self.rows() if row.key not in finished]

    def rows(self) -> list[Row]:
        """Every row, in the order in which results are listed."""
        return plan(select(self.only), self.dtypes, self.device)

    def save(self, path: Path) -> None:
        """Write it for the other processes."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def restore(cls, path: Path) -> Plan:
        """Read what ``save`` wrote."""
        return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def from_dict(cls, fields: Mapping[str, str | Sequence[str] | Mapping[str, str]]) -> Plan:
        """The plan of a JSON object."""
        return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})  # type: ignore[arg-type]

    def differences(self, other: Plan) -> list[str]:
        """Where two plans differ, in words."""
        mine, theirs = asdict(self), asdict(other)
        return [
            f"{key}: {theirs[key]!r} there, {mine[key]!r} here"
            for key in mine
            if key != "finished" and mine[key] != theirs[key]
        ]
