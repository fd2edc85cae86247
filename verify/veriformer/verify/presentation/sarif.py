"""Runs as SARIF 2.1.0, the format in which tools hand findings to the code scanning of a host of repositories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from veriformer.spec import suite
from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.presentation.located import Located, locate_findings
from veriformer.verify.presentation.verdict import headline, word
from veriformer.verify.results import Results
from veriformer.verify.results.foreign import clean
from veriformer.verify.results.record import json_safe, write_json

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
    """Return what the run comes to, and why where it has no verdict."""
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
