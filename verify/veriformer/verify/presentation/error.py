"""Findings as an exception, which a test raises where a run does not hold."""

from __future__ import annotations

from veriformer.verify.presentation.ranked import grave
from veriformer.verify.results import Results
from veriformer.verify.results.finding import Finding


class FindingsError(AssertionError):
    """A run that does not hold; the message is the terminal's text. ``findings``: those that decide the verdict."""

    def __init__(self, message: str, findings: list[Finding]) -> None:
        super().__init__(message)
        self.findings = findings


def raise_for(run: Results) -> None:
    """Return where the run holds; raise FindingsError where it is violated, inconclusive or invalid."""
    if run.verdict == "holds":
        return
    from veriformer.verify.presentation.terminal import as_text  # rich is needed only to tell

    raise FindingsError(as_text(run), grave(run))
