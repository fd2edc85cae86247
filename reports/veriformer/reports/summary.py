"""The report as Markdown, short enough for the summary of a CI job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from veriformer.reports import costs
from veriformer.reports.evidence import suite_errors
from veriformer.reports.findings import Entry, list_findings, remarks
from veriformer.reports.page import Inputs, headline
from veriformer.reports.runs import Run
from veriformer.verify.presentation.known_failures import known_failures
from veriformer.verify.presentation.recognised import deviations
from veriformer.verify.results.foreign import last_line

SHOWN = 20
"""Findings, errors and remarks shown; the rest are counted."""

LONGEST_SCRIPT = 4000
"""Characters up to which a script stands in the summary, whose size is limited; a longer one is in the report."""


def summary(inputs: Inputs) -> str:
    """Return the report as Markdown."""
    return "\n".join(_lines(inputs)) + "\n"


def _lines(inputs: Inputs) -> Iterator[str]:
    yield f"## Veriformer: {text(headline(inputs.verdicts))}"
    yield ""
    yield from _verdicts(inputs)
    for run in inputs.runs:
        yield from _findings(run, named=len(inputs.runs) > 1)
    broken = suite_errors(inputs.runs)
    if broken:
        yield from ("", "### Errors of the suite", "")
        yield from (
            f"- {code(row.key)} on {code(run.label)}: {text(last_line(row.message or ''))}"
            for run, row in broken[:SHOWN]
        )
    extras = list(_extras(inputs))
    if extras:
        yield from ("", "### Beside the runs", "", *extras)


def _verdicts(inputs: Inputs) -> Iterator[str]:
    yield "| | run | verdict | planned | run | not shown |"
    yield "|---|---|---|---:|---:|---|"
    for verdict in inputs.verdicts:
        results = verdict.run.results
        told = (verdict.headline, verdict.scope, deviations(results.implementation))
        words = (
            verdict.sign,
            code(verdict.run.label),
            f"**{text(verdict.word)}** " + text(". ".join(filter(None, told)) + "."),
            str(results.planned),
        )
        caveat = text(verdict.caveat.removeprefix("Not shown: ").removesuffix(".") or "–")
        yield f"| {' | '.join(words)} | {len(results.results)} | {caveat} |"


def _findings(run: Run, *, named: bool) -> Iterator[str]:
    listed = list_findings(run)
    found = listed.violating
    of = f" of {code(run.label)}" if named else ""
    if found:
        yield from ("", f"### Findings{of}", "")
    for entry in found[:SHOWN]:
        yield from _entry(entry)
    if len(found) > SHOWN:
        yield f"\n… and {len(found) - SHOWN} more findings."
    if others := listed.weaknesses:
        yield from ("", f"**Weaknesses{of}**", "")
        yield from (f"- {text(entry.title)}" for entry in others[:SHOWN])
    if known := known_failures(run.results):
        yield from ("", f"### Known failures{of}", "")
        yield from (f"- {text(one.text)}" for one in known[:SHOWN])
    for heading, lines in remarks(run):
        yield from ("", f"**{heading}{of}**", "", *(f"- {text(line)}" for _, line in lines[:SHOWN]))
        if len(lines) > SHOWN:
            yield f"- … and {len(lines) - SHOWN} more"


def _entry(entry: Entry) -> Iterator[str]:
    """Give a finding with its facts, and its script where that is short."""
    yield f"{entry.number}. **{entry.finding.weight}** {text(entry.title)}"
    yield from (f"   - {label}: {text(told)}" for label, told in entry.facts)
    script = entry.evidence.script
    if script and len(script) <= LONGEST_SCRIPT:
        yield from ("", "   <details><summary>a script that shows it</summary>", "")
        yield from (f"   {line}" if line else "" for line in fenced(script))
        yield from ("", "   </details>", "")


def _extras(inputs: Inputs) -> Iterator[str]:
    if inputs.specification:
        steps = ", ".join(f"{count} {look[1]}" for look, count in inputs.specification.steps)
        errata = len(inputs.specification.errata)
        number = len(inputs.specification.equations)
        yield f"- Equations: {number}; derivation steps: {steps or 'none'}; errata: {errata}."
    if inputs.kills:
        yield f"- Kill matrix: {text(inputs.kills.sentence)}"
        yield from (f"  - survivor {code(m['id'])}: {text(str(m['title']))}" for m in inputs.kills.survivors)
    if inputs.benchmarks:
        yield f"- Exact counts: {text(costs.sentence(inputs.benchmarks))}"


def text(words: str) -> str:
    """Return words that Markdown shows as they are, also within a table."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", " ".join(words.split()))


def code(words: str) -> str:
    """Return inline code, also within a table and with backquotes in it."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence, pad = "`" * (longest + 1), " " if "`" in words else ""
    return f"{fence}{pad}{' '.join(words.split())}{pad}{fence}".replace("|", "\\|")


def fenced(script: str) -> Sequence[str]:
    """Return a code block, fenced by more backquotes than the script has in a row."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", script)), 3)
    return [f"{fence}python", *script.rstrip("\n").split("\n"), fence]
