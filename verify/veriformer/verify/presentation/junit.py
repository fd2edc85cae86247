"""A run as JUnit XML, written once its findings are known: rows agree with verdict and exit status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from veriformer.verify.presentation.verdict import headline, scope, word
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import clean, one_line
from veriformer.verify.results.record import Result, Results
from veriformer.verify.results.verdict import HELD, VIOLATIONS, Status
from veriformer.verify.results.words import facts, title

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_VALUES = 2000
"""Characters of an argument or a result that are shown."""

_GAPS = "verdict"
"""The test case that fails where there is no verdict: a run without one is no success."""


def write_junit(run: Results, path: Path) -> None:
    """Write the run as one test suite: a case for each row that is provided, and one for the verdict."""
    cases = [*_rows(run), _verdict(run)]
    counts = {kind: sum(case.find(kind) is not None for case in cases) for kind in ("failure", "error", "skipped")}
    told = {"tests": len(cases), "failures": counts["failure"], "errors": counts["error"], "skipped": counts["skipped"]}
    suite = ElementTree.Element("testsuite", name="veriformer", time=f"{run.duration_s:.3f}", timestamp=run.started)
    suite.attrib |= {name: str(count) for name, count in told.items()}
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _rows(run: Results) -> Iterable[ElementTree.Element]:
    """Yield a case for each provided row, a failure with the facts of its finding, values and script."""
    of = {key: finding for finding in run.findings for key in finding.rows}
    for row in run.results:
        if row.status is Status.NOT_PROVIDED:
            continue
        whose = f"@{row.candidate}" if row.candidate else ""
        name = (f"{row.requirement}[{row.dtype}]" if row.dtype else row.requirement) + whose
        case = ElementTree.Element("testcase", classname=row.operation, name=_text(name), time=f"{row.seconds:.3f}")
        kind = _kind(row.status)
        if kind:
            told = "\n".join(_evidence(row, of.get(row.key))) if kind == "failure" else ""
            _tell(case, kind, f"{name} {row.status}: {row.message}\n{told}")
        yield case


def _evidence(row: Result, finding: Finding | None) -> Iterator[str]:
    """Give the finding with its facts, and of the row's own call the values and the script."""
    if finding is not None:
        yield f"\nfinding {finding.id}: {title(finding)}"
        yield from (f"{label}: {text}" for label, text in facts(finding))
    example = row.counterexample
    if example is not None:
        yield ""
        yield from (f"{name} = {one_line(value, _VALUES)}" for name, value in example.arguments.items())
        told = (("observed", example.observed), ("exact", example.exact), ("bound", example.bound))
        yield from (f"{name}: {one_line(value, _VALUES)}" for name, value in told if value is not None)
        yield from ("", example.script or "")


def _kind(status: Status) -> str:
    if status is Status.HARNESS_ERROR:
        return "error"
    if status in VIOLATIONS:
        return "failure"
    return "" if status in HELD or status is Status.KNOWN_FAIL else "skipped"


def _verdict(run: Results) -> ElementTree.Element:
    """Return the verdict as a case: findings, the domain and gaps decide it besides rows."""
    case = ElementTree.Element("testcase", classname="veriformer", name=_GAPS, time="0")
    said = f"{word(run).upper()} {headline(run)}. {scope(run)}"
    if run.exit_status:
        _tell(case, "failure" if run.exit_status == 1 else "error", said)
    else:
        ElementTree.SubElement(case, "system-out").text = _text(said)
    return case


def _tell(case: ElementTree.Element, kind: str, said: str) -> None:
    message = _text(said)
    ElementTree.SubElement(case, kind, message=message.partition("\n")[0][:500]).text = message


def _text(said: str) -> str:
    return _NO_XML.sub("?", clean(said))
