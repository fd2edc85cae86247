"""Runs as SARIF 2.1.0, the format in which tools hand findings to the code scanning of a host of repositories.

Findings have a level, a rule, a place in a file and what is wrong there; as workflow commands of GitHub Actions they
are shown at their lines in the changes of a pull request.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from veriformer.spec import suite
from veriformer.spec.requirement import Requirement, Weight
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.presentation.ranked import grave, ranked
from veriformer.verify.presentation.verdict import headline, word
from veriformer.verify.results import Results
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import clean
from veriformer.verify.results.record import json_safe, write_json
from veriformer.verify.results.words import facts, title

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NO_VERDICT = ("inconclusive", "invalid")
_ROOT = "%SRCROOT%"
_BY_SLUG = {one.slug: one for one in REQUIREMENTS}


def write_sarif(runs: Sequence[Results], path: Path) -> None:
    """Write runs as one log."""
    write_json(sarif(runs), path)


def sarif(runs: Iterable[Results]) -> dict[str, Any]:
    """Return the log of some runs."""
    found: dict[str, Any] = json_safe({"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(run) for run in runs]})
    return found


def _run(run: Results) -> dict[str, Any]:
    found = list(locate_findings(run))
    rules = list(dict.fromkeys(one.rule for one in found))
    return {
        "tool": {"driver": {"name": "veriformer", "version": suite.version(), "rules": [*map(_rule, rules)]}},
        # One tool may send several runs only where each has a name of its own.
        "automationDetails": {"id": f"veriformer/{clean(run.implementation['target'])}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(run)],
        "results": [_result(one, rules.index(one.rule)) for one in found],
    }


def _rule(slug: str) -> dict[str, Any]:
    known = _BY_SLUG.get(slug)
    return {"id": slug} if known is None else {"id": slug, **_described(known)}


def _described(requirement: Requirement) -> dict[str, Any]:
    return {
        "shortDescription": {"text": requirement.bug_class or requirement.statement},
        "fullDescription": {"text": requirement.statement},
        "help": {"text": f"{requirement.floating_point_statement}\n\nMore: veriformer explain {requirement.slug}"},
        "properties": {"tags": [requirement.operation, requirement.kind.value, requirement.weight.value]},
    }


def _invocation(run: Results) -> dict[str, Any]:
    """Return the outcome of the run, and the reason where it has no verdict."""
    level = "error" if run.verdict in _NO_VERDICT else "note"
    said = f"{word(run).upper()} {headline(run)}"
    notes = [said, *(run.gaps if run.verdict in _NO_VERDICT else ())]
    return {
        "executionSuccessful": run.verdict not in _NO_VERDICT,
        "toolExecutionNotifications": [{"level": level, "message": {"text": clean(note)}} for note in notes],
    }


def _result(one: Located, index: int) -> dict[str, Any]:
    return {
        "ruleId": one.rule,
        "ruleIndex": index,
        "level": one.level,
        "message": {"text": one.said},
        "locations": [] if one.file is None else [{"physicalLocation": _place(one.file, one.line)}],
        "partialFingerprints": {"veriformerFinding/v1": one.finding.id},
        "properties": {"weight": one.finding.weight.value, "dtypes": list(one.finding.dtypes)},
    }


def _place(file: str, line: int) -> dict[str, Any]:
    absolute = Path(file).is_absolute()
    uri = Path(file).as_uri() if absolute else quote(file)
    return {
        "artifactLocation": {"uri": uri} if absolute else {"uri": uri, "uriBaseId": _ROOT},
        "region": {"startLine": line},
    }


ERROR, WARNING, NOTE = "error", "warning", "note"

IN_GITHUB = "GITHUB_ACTIONS"
"""The variable that is ``true`` where GitHub Actions reads what a command prints."""


@dataclass(frozen=True)
class Located:
    """A finding in a file. level: error where it violates. rule: the most telling requirement.

    file: relative to the root of the repository, with forward slashes, where it is there; None where nothing is known.
    """

    finding: Finding
    level: str
    file: str | None
    line: int

    @property
    def rule(self) -> str:
        """The slug of the requirement that tells most; of what no requirement asks, the operation and the weight."""
        finding = self.finding
        return next(iter(finding.requirements), f"{finding.operation}.{finding.weight}")

    @property
    def heading(self) -> str:
        """The finding on one line."""
        return f"{self.finding.weight}: {title(self.finding)}"

    @property
    def said(self) -> str:
        """The finding, and the facts below it."""
        return "\n".join([self.heading, *(f"{label}: {text}" for label, text in facts(self.finding))])


def locate_findings(run: Results) -> Iterator[Located]:
    """Give the findings of a run, the gravest first."""
    violating = grave(run)
    for finding in ranked(run):
        lesser = WARNING if finding.weight is Weight.WEAKNESS else NOTE
        file, line = _where(finding, run)
        yield Located(finding, ERROR if finding in violating else lesser, file, line)


def _where(finding: Finding, run: Results) -> tuple[str | None, int]:
    """Return where the finding is; where its code has no place, the beginning of the file that was judged."""
    known = finding.where or run.implementation.get("where", {}).get(finding.operation)
    if known:
        return _in_repository(known["file"]), known["line"]
    target = str(run.implementation["target"]).partition(".py:")
    file = target[0] + ".py" if target[1] else target[0]
    return (_in_repository(file), 1) if file.endswith(".py") else (None, 1)


def _in_repository(file: str) -> str:
    """Return a file relative to the root of the checkout, which a job's workspace is, else the working directory."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    path = Path.cwd() / file
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def workflow_commands(run: Results) -> Iterator[str]:
    """Give one workflow command for each finding."""
    for one in locate_findings(run):
        yield f"::{'notice' if one.level == NOTE else one.level} {_properties_of(one)}::{_escaped(one.said)}"


def _properties_of(one: Located) -> str:
    place = {} if one.file is None else {"file": one.file, "line": str(one.line)}
    named = {**place, "title": f"veriformer: {one.rule}"}
    return ",".join(f"{name}={_escaped_property(value)}" for name, value in named.items())


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
