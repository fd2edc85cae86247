"""A comparison as it is shown on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.terminal import STYLES, capture_text, print_unpadded, show_findings, show_remarks
from veriformer.verify.presentation.verdict import counted
from veriformer.verify.results.foreign import number, one_line
from veriformer.verify.results.words import title

if TYPE_CHECKING:  # whose module imports this one
    from veriformer.verify.comparison.record import Comparison

_MEANING = {
    Weight.WRONG: "differs on ordinary input, or touches what is not its own",
    Weight.LEAK: "takes its result from earlier calls or from memory that is not its own",
    Weight.FRAGILE: "the same on ordinary input, another on extreme or degenerate input",
}
_SAID = {"holds": "AGREE", "violated": "DIFFER", "inconclusive": "NO VERDICT"}


def show(found: Comparison, out: Console, saved: str | None = None) -> None:
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


def headline(found: Comparison) -> str:
    """Return the verdict of a comparison as one sentence."""
    candidate, reference = one_line(found.candidate, 80), one_line(found.reference, 80)
    if found.verdict == "violated":
        return f"{candidate} is not {reference}: {counted(found.grave)}"
    if found.verdict == "inconclusive":
        return f"{candidate} and {reference} could not be compared: {one_line(found.why, 300)}"
    return f"{candidate} computes what {reference} does, as far as it was tried: no finding"


def as_text(found: Comparison) -> str:
    """Return a comparison as plain text."""
    return capture_text(lambda out: show(found, out))
