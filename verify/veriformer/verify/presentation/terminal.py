"""The end of a run on a terminal: a screen of findings, and where the rest is."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.known_failures import known_failures
from veriformer.verify.presentation.ranked import grave, weaknesses
from veriformer.verify.presentation.recognised import deviations, inspected, opening
from veriformer.verify.presentation.recognised import lines as recognised
from veriformer.verify.presentation.remarks import Remark, advised, lacking, measured, not_seen
from veriformer.verify.presentation.verdict import headline, scope, word
from veriformer.verify.results import Results, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import last_line, number, one_line
from veriformer.verify.results.words import MEANING, facts, title

DETAILED, LISTED, REMARKS = 5, 10, 6
"""Findings shown with their facts; findings named after these; remarks of one kind."""

STYLES = {"holds": "bold green", "violated": "bold red", "inconclusive": "bold yellow", "invalid": "bold magenta"}
_WEIGHTS = {Weight.WRONG: "bold red", Weight.LEAK: "bold red", Weight.FRAGILE: "bold yellow"}
_LABEL = len("intended?")
WIDTH = 100
"""Columns of text that is read elsewhere than on a terminal."""


def show(run: Results, out: Console, saved: str | None = None, told: Sequence[Finding] = ()) -> None:
    """Print the verdict, the findings, and one line each for the rest.

    saved: the file that holds the scripts. told: findings that were told while the run went on; what they are now
    called otherwise, or are no more, is said.
    """
    print_unpadded(Text.assemble(_word(run), f" {headline(run)}"), out)
    for line in filter(None, (scope(run), deviations(run.implementation))):
        print_unpadded(Text(line), out)
    _errors(run, out)
    earlier = other_words(told, run.findings)
    show_findings(grave(run), out, saved=saved, earlier=earlier)
    show_findings(weaknesses(run), out, saved=saved, earlier=earlier)
    shown = {key for one in (*grave(run), *weaknesses(run)) for key in one.rows}
    for one in told:
        if shown.isdisjoint(one.rows):
            print_unpadded(Text(f"\ntold before, and no more: {title(one)}"), out)
    _known_failures(run, out)
    for kind in (advised, lacking, measured, not_seen):
        show_remarks(list(kind(run)), out)
    out.print()
    print_unpadded(Text(_end(run, saved), style="dim"), out)


def print_unpadded(shown: RenderableType, out: Console) -> None:
    """Print within the width of the console, without the spaces with which tables fill their lines up."""
    for line in out.render_lines(shown, pad=False):
        text = Text.assemble(*((part.text, part.style or "") for part in line))
        text.rstrip()
        out.print(text, soft_wrap=True)


def _word(run: Results) -> Text:
    """Return the verdict in capitals, and beside it how many weaknesses there are."""
    verdict, _, more = word(run).partition(" ")
    return Text(verdict.upper(), style=STYLES[str(run.verdict)]).append(f" {more}:" if more else "")


def show_recognised(found: Mapping[str, Any], target: str, out: Console) -> None:
    """Print the recognition of code that was not written for the contract; nothing for other targets."""
    if not found:
        return
    out.print(Text(opening(target, found)))
    _grid(list(recognised(found)), out, label="bold")
    out.print()


def show_inspected(target: str, found: Mapping[str, Any], domains: Mapping[str, Any], out: Console) -> None:
    """Print everything that was recognised and everything that was not, with constants and domain."""
    name = one_line(target, 80)
    if not found:
        out.print(Text(f"{name} has names of the contract: {', '.join(domains) or 'none that was asked for'}"))
    else:
        out.print(Text(opening(target, found)))
    _grid(list(inspected(found, domains)), out, label="bold")


def as_text(run: Results) -> str:
    """Return a run as plain text."""
    return capture_text(lambda out: show(run, out))


def capture_text(show: Callable[[Console], None]) -> str:
    """Return the output of a function as plain text."""
    file = io.StringIO()
    show(Console(file=file, width=WIDTH, color_system=None, highlight=False, emoji=False, markup=False))
    return file.getvalue().removesuffix("\n")


def show_findings(
    found: Sequence[Finding],
    out: Console,
    meaning: Mapping[Weight, str] = MEANING,
    saved: str | None = None,
    earlier: Mapping[str, str] | None = None,
) -> None:
    """Print findings under their weights, the first with their facts.

    meaning: what each weight says of the code. saved: the file that holds the facts of the others. earlier: by
    identifier, the words in which a finding was told while the run went on, where they were others.
    """
    weight = None
    for position, finding in enumerate(found[: DETAILED + LISTED]):
        if finding.weight is not weight:
            weight = finding.weight
            heading = Text(f"\n{weight.upper()}", style=_WEIGHTS.get(weight, "bold"))
            print_unpadded(heading.append(f"  {meaning[weight]}", style="not bold dim"), out)
        _grid([(f"{position + 1}.", title(finding))], out, label="bold", text="bold")
        if position < DETAILED:
            said = [("told as", earlier[finding.id])] if earlier and finding.id in earlier else []
            _grid([("", label.ljust(_LABEL), text) for label, text in [*said, *facts(finding)]], out)
    hidden = len(found) - DETAILED - LISTED
    more = f"and {number(hidden, 'more finding')}; " if hidden > 0 else ""
    if len(found) > DETAILED:
        where = saved or "the file that --html FILE or --json FILE writes"
        print_unpadded(Text(f"\n… {more}the evidence of every finding: {where}"), out)


def other_words(told: Sequence[Finding], found: Sequence[Finding]) -> dict[str, str]:
    """Return, by identifier of a finding, the words in which it was told before more rows told more of it."""
    said: dict[str, str] = {}
    for early in told:
        same = [one for one in found if not set(early.rows).isdisjoint(one.rows)]
        if not any(title(one) == title(early) for one in same):
            said |= {one.id: title(early) for one in same}
    return said


def _known_failures(run: Results, out: Console) -> None:
    known = known_failures(run)
    if not known:
        return
    heading = Text("\nKNOWN FAILURES", style="bold")
    print_unpadded(heading.append("  fail as waived, each with a reason, a link and an end", style="not bold dim"), out)
    _grid([(f"{place}.", one.text) for place, one in enumerate(known[:LISTED], 1)], out)
    if len(known) > LISTED:
        out.print(f"… and {number(len(known) - LISTED, 'more waiver')}")


def show_remarks(remarks: Sequence[Remark], out: Console) -> None:
    """Print an empty line, and one for each remark."""
    if not remarks:
        return
    out.print()
    more = [("", f"… and {len(remarks) - REMARKS} more")] if len(remarks) > REMARKS else []
    style = "bold" if remarks[0][0] in ("imprecise", "unguarded") else "dim"
    _grid([*remarks[:REMARKS], *more], out, label=style)


def _grid(lines: Iterable[Sequence[str]], out: Console, label: str = "dim", text: str = "") -> None:
    """Print lines after their labels; long ones are wrapped below their own beginning."""
    table = Table.grid(padding=(0, 1))
    lines = list(lines)
    if not lines:
        return
    labels = len(lines[0]) - 1
    for column in range(labels):
        narrow = 3 if column == 0 and labels > 1 else None
        table.add_column(no_wrap=True, style=label, min_width=narrow)
    table.add_column(overflow="fold", style=text)
    for line in lines:
        table.add_row(*map(Text, line))
    print_unpadded(table, out)


def _errors(run: Results, out: Console) -> None:
    """Print where the suite itself broke, and the last line of why, for the first few rows."""
    broken = [row for row in run.results if row.status == Status.HARNESS_ERROR]
    for row in broken[:3]:
        said = one_line(last_line(row.message or ""), 200)
        print_unpadded(Text(f"suite error in {row.key}: {said}", style="magenta"), out)


def _end(run: Results, saved: str | None) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in run.summary.items())
    ran = f"{number(len(run.results), 'row')} in {run.duration_s:.1f} s ({counts}); profile {run.profile}, seed "
    kept = f"scripts that show each finding: {saved}" if saved else "--json FILE or --html FILE keeps the scripts"
    more = f"; {kept}" if any(finding.counterexample for finding in grave(run)) else ""
    return f"{ran}{one_line(run.seed, 40)}; --rows shows every row{more}"
