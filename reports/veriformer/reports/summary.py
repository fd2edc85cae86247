"""The report as Markdown, short enough for the summary of a CI job."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from veriformer.reports import costs
from veriformer.reports.page import Findings, headline
from veriformer.reports.violations import Violation, violations

SHOWN = 20
"""Violations shown in full; the rest are counted."""

LONGEST_SCRIPT = 4000
"""Characters up to which a script stands in the summary, whose size is limited; a longer one is in the report."""


def summary(findings: Findings) -> str:
    """The Markdown text."""
    return "\n".join(_lines(findings)) + "\n"


def _lines(findings: Findings) -> Iterator[str]:
    yield f"## Veriformer: {text(headline(findings.verdicts))}"
    yield ""
    yield from _verdicts(findings)
    found = violations(findings.runs)
    if found:
        yield from ("", "### Violations", "")
        for violation in found[:SHOWN]:
            yield from _violation(violation)
        if len(found) > SHOWN:
            yield f"… and {len(found) - SHOWN} more."
    extras = list(_extras(findings))
    if extras:
        yield from ("", "### Beside the runs", "", *extras)


def _verdicts(findings: Findings) -> Iterator[str]:
    yield "| | run | verdict | planned | run | not shown |"
    yield "|---|---|---|---:|---:|---|"
    for verdict in findings.verdicts:
        results = verdict.run.results
        words = (verdict.sign, code(verdict.run.label), text(verdict.sentence), str(results.planned))
        caveat = text(verdict.caveat.removeprefix("Not shown: ").removesuffix(".") or "–")
        yield f"| {' | '.join(words)} | {len(results.results)} | {caveat} |"


def _violation(violation: Violation) -> Iterator[str]:
    row = violation.row
    place = f"{code(row.requirement)} on {code(violation.run.label)} ({row.dtype or 'any dtype'}, {text(row.device)})"
    yield f"- {violation.look.sign} **{violation.look.word}** {place}: {text(_first_line(row.message))}"
    if violation.example and violation.example.script and len(violation.example.script) <= LONGEST_SCRIPT:
        yield from ("", "  <details><summary>a script that shows it</summary>", "")
        yield from (f"  {line}" if line else "" for line in fenced(violation.example.script))
        yield from ("", "  </details>", "")


def _extras(findings: Findings) -> Iterator[str]:
    if findings.specification:
        steps = ", ".join(f"{count} {look[1]}" for look, count in findings.specification.steps)
        errata = len(findings.specification.errata)
        number = len(findings.specification.equations)
        yield f"- Equations: {number}; derivation steps: {steps or 'none'}; errata: {errata}."
    if findings.kills:
        yield f"- Kill matrix: {text(findings.kills.sentence)}"
        yield from (f"  - survivor {code(m['id'])}: {text(str(m['title']))}" for m in findings.kills.survivors)
    if findings.benchmarks:
        yield f"- Exact counts: {text(costs.sentence(findings.benchmarks))}"


def text(words: str) -> str:
    """Words that Markdown shows as they are, also within a table."""
    return re.sub(r"([\\`*_{}\[\]<>|#~$])", r"\\\1", " ".join(words.split()))


def code(words: str) -> str:
    """Inline code, also within a table and with backquotes in it."""
    longest = max((len(run) for run in re.findall(r"`+", words)), default=0)
    fence, pad = "`" * (longest + 1), " " if "`" in words else ""
    return f"{fence}{pad}{' '.join(words.split())}{pad}{fence}".replace("|", "\\|")


def fenced(script: str) -> Sequence[str]:
    """A code block, fenced by more backquotes than the script has in a row."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", script)), 3)
    return [f"{fence}python", *script.rstrip("\n").split("\n"), fence]


def _first_line(message: str | None) -> str:
    return (message or "").strip().partition("\n")[0]
