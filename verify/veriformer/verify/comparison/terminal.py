"""A comparison as it is shown on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.terminal import STYLES, capture_text, print_unpadded, show_findings, show_remarks
from veriformer.verify.presentation.verdict import counted
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import number, one_line
from veriformer.verify.results.words import title

_MEANING = {
    Weight.WRONG: "differs on ordinary input, or touches what is not its own",
    Weight.LEAK: "takes its result from earlier calls or from memory that is not its own",
    Weight.FRAGILE: "the same on ordinary input, another on extreme or degenerate input",
}
_SAID = {"holds": "AGREE", "violated": "DIFFER", "inconclusive": "NO VERDICT"}


class Compared(Protocol):
    """The part of a comparison that is told. A protocol, because ``Comparison`` itself tells its findings."""

    @property
    def reference(self) -> str:
        """The first, as it was asked for."""

    @property
    def candidate(self) -> str:
        """The second."""

    @property
    def verdict(self) -> str:
        """Verdict of the comparison."""

    @property
    def findings(self) -> Sequence[Finding]:
        """Every difference."""

    @property
    def grave(self) -> Sequence[Finding]:
        """Findings that the verdict rests on."""

    @property
    def power(self) -> float | None:
        """The relative deviation that would have been found."""

    @property
    def cases(self) -> int:
        """Number of cases that were judged."""

    @property
    def calls(self) -> int:
        """Number of calls of the candidate."""

    @property
    def notes(self) -> Sequence[str]:
        """Further remarks for the reader."""

    @property
    def why(self) -> str:
        """Why there is no verdict."""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""


def show(found: Compared, out: Console, saved: str | None = None) -> None:
    """Print the verdict, the findings, and one line each for the rest. saved: the file that holds the scripts."""
    verdict = str(found.verdict)
    print_unpadded(Text.assemble((_SAID[verdict], STYLES[verdict]), f" {headline(found)}"), out)
    if found.power is not None:
        out.print(f"A relative deviation above {found.power:.1g} would have been found in the given call")
    show_findings(found.grave, out, _MEANING)
    show_remarks([(one.weight.value, title(one)) for one in found.findings if one.weight.advice], out)
    show_remarks([("note", one_line(note, 240)) for note in found.notes], out)
    kept = f"; scripts that show each finding: {saved}" if saved else "; --json FILE keeps the scripts"
    tried = f"{number(found.cases, 'case')}, {number(found.calls, 'call')} of the candidate in {found.seconds:.1f} s"
    print_unpadded(Text(f"\n{tried}{kept if found.findings else ''}", style="dim"), out)


def headline(found: Compared) -> str:
    """The comparison in one sentence."""
    candidate, reference = one_line(found.candidate, 80), one_line(found.reference, 80)
    if found.verdict == "violated":
        return f"{candidate} is not {reference}: {counted(found.grave)}"
    if found.verdict == "inconclusive":
        return f"{candidate} and {reference} could not be compared: {one_line(found.why, 300)}"
    return f"{candidate} computes what {reference} does, as far as it was tried: no finding"


def as_text(found: Compared) -> str:
    """Return a comparison as plain text."""
    return capture_text(lambda out: show(found, out))
