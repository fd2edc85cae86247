"""Rows in which the suite itself broke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veriformer.reports.evidence import Evidence, collect_evidence
from veriformer.reports.layout import row_anchor
from veriformer.reports.runs import Run
from veriformer.reports.statuses import STATUS_STYLES, StatusStyle
from veriformer.verify.results import Result, Status


@dataclass(frozen=True)
class SuiteError:
    """A row in which the suite broke, ready to be shown."""

    run: Run
    row: Result

    @property
    def look(self) -> StatusStyle:
        """Return sign, word and colour of its status."""
        return STATUS_STYLES[self.row.status]

    @property
    def anchor(self) -> str:
        """Return the name of its place on the page."""
        return row_anchor(self.run, self.row)

    @property
    def evidence(self) -> Evidence:
        """Return the call at which it broke."""
        return collect_evidence(vars(self.row.counterexample) if self.row.counterexample else None)


def suite_errors(runs: Sequence[Run]) -> list[SuiteError]:
    """Return the rows in which the suite broke."""
    rows = [SuiteError(run, row) for run in runs for row in run.results.results]
    return [one for one in rows if one.row.status is Status.HARNESS_ERROR]
