"""Known failures of a run: rows that fail as waived, those of one waiver together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veriformer.verify.results import Results
from veriformer.verify.results.foreign import named, one_line

_LINE = 300


@dataclass(frozen=True)
class KnownFailure:
    """A waiver and the rows that it covers. link: None in files that earlier versions wrote."""

    reason: str
    link: str | None
    expires: str | None
    rows: tuple[Any, ...]

    @property
    def what(self) -> str:
        """Return the requirements with the dtypes in which they fail."""
        dtypes: dict[str, list[str]] = {}
        for row in self.rows:
            dtypes.setdefault(row.requirement, []).append(row.dtype or "any dtype")
        return "; ".join(f"{slug} ({named(list(dict.fromkeys(met)), 4)})" for slug, met in dtypes.items())

    @property
    def text(self) -> str:
        """Return all of it on one line."""
        until = f"; waived until {self.expires}" if self.expires else ""
        link = f"; {self.link}" if self.link else ""
        return one_line(f"{self.what}: {self.reason}{until}{link}", _LINE)


def known_failures(run: Results) -> Sequence[KnownFailure]:
    """Return the waivers that rows of a run fall under, in the order of the rows."""
    groups: dict[tuple[str, str | None, str | None], list[Any]] = {}
    for row in run.results:
        if row.status == "known-fail":
            waiver = row.waiver or {}
            told = str(waiver.get("reason", row.message))
            groups.setdefault((told, waiver.get("link"), waiver.get("expires")), []).append(row)
    return [KnownFailure(*waiver, tuple(rows)) for waiver, rows in groups.items()]
