"""The findings of a run as reviews of code show them: a level, a rule, a place in a file and what is wrong there.

As workflow commands of GitHub Actions they are shown at their lines in the changes of a pull request.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.ranked import grave, ranked
from veriformer.verify.results import Results
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.words import facts, title

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
        file, line = _place(finding, run)
        yield Located(finding, ERROR if finding in violating else lesser, file, line)


def _place(finding: Finding, run: Results) -> tuple[str | None, int]:
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
