"""Part of a run that a results file holds, where the run was split over several machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A part of a run that several machines share.

    number: from 1. of: how many there are. plan: what the whole run was asked for; equal in all parts. rows: what this
    part was to run, by key. versions: of everything that a result depends on, by name; equal in all parts.
    """

    number: int
    of: int
    plan: Mapping[str, Any]
    rows: tuple[str, ...]
    versions: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry ``shard`` of results.json."""
        return {**asdict(self), "rows": list(self.rows)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Shard:
        """Read an entry ``shard``."""
        return cls(**{**entry, "rows": tuple(entry["rows"])})

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
