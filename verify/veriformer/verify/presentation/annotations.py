"""Findings as workflow commands of GitHub Actions, which shows them at their lines in the changes of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from veriformer.verify.presentation.located import NOTE, Located, locate_findings
from veriformer.verify.results import Results

IN_GITHUB = "GITHUB_ACTIONS"
"""The variable that is ``true`` where GitHub Actions reads what a command prints."""


def workflow_commands(run: Results) -> Iterator[str]:
    """Give one workflow command for each finding."""
    for one in locate_findings(run):
        yield f"::{'notice' if one.level == NOTE else one.level} {_properties(one)}::{_data(one.said)}"


def _properties(one: Located) -> str:
    place = {} if one.file is None else {"file": one.file, "line": str(one.line)}
    named = {**place, "title": f"veriformer: {one.rule}"}
    return ",".join(f"{name}={_property(value)}" for name, value in named.items())


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
