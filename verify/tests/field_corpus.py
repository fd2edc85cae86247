"""Not a test: files of ordinary code in `field/`, how the suite judges one, and whether it said what is due.

`field/NAME.py` is correct; NAME__FAULT is the same with one fault. `field/expected.toml` says for each

- verdict: "holds" or "violated"; dtypes: names, where not fp64 and fp32.
- of a correct file, domain.OPERATION: constants and precision (name to value, as a person would read it), refused and
  rules (regular expressions, each found in some feature that is refused, or in some rule on sizes).
- of a faulty one: fault, in words, and the edits that make it; operation and weight of the finding that is due (a name,
  or several that will do). It holds where PyTorch, or the formula in that dtype, has the fault as well: the weight is
  "weakness" then;
  match (a regular expression on what it says and when) and requirements, by either of which it is recognised.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.edited_files import written
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify import check, load

FOLDER = Path(__file__).with_name("field")
DTYPES = ("fp64", "fp32")
VIOLATING = ("wrong", "leak", "fragile")

Finding = Mapping[str, Any]


@functools.cache
def expected() -> dict[str, dict[str, Any]]:
    """By name of a file, what is due to it."""
    return tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))


def path_of(name: str) -> Path:
    """Return the path of a file; a faulty one is written from the correct one by its edits."""
    correct, _, fault = name.partition("__")
    file = FOLDER / f"{correct}.py"
    return written(name, file, expected()[name]["edits"]) if fault else file


def operations(implementation: object) -> list[str]:
    """The operations of the contract that a file provides."""
    names = dict.fromkeys(requirement.operation for requirement in REQUIREMENTS)
    return [name for name in names if callable(getattr(implementation, name, None))]


def judged(name: str, dtypes: tuple[str, ...] = DTYPES) -> dict[str, Any]:
    """Judge a file and return its results as in results.json: the operations that it provides, with little work."""
    implementation = load(str(path_of(name))).implementation
    found = check(implementation, only=operations(implementation), profile="quick", dtype=dtypes, partial=True)
    return found.to_dict()


def complaints(name: str) -> list[str]:
    """Judge a file, and say what is not as it is due."""
    expectation = expected()[name]
    return evaluate(judged(name, tuple(expectation.get("dtypes", DTYPES))), expectation)


def evaluate(document: Mapping[str, Any], expectation: Mapping[str, Any]) -> list[str]:
    """Return the differences between the results of a run and the expectation; empty where there are none."""
    due, got = expectation["verdict"], document.get("verdict")
    verdict = [] if got == due else [f"the verdict is {got}, not {due}"]
    compared = _of_faulty if "fault" in expectation else _of_correct
    return verdict + compared(document, expectation)


def _of_correct(document: Mapping[str, Any], expectation: Mapping[str, Any]) -> list[str]:
    alarms = [f"false alarm: {_told(finding)}" for finding in document["findings"] if finding["weight"] in VIOLATING]
    for operation, facts in expectation.get("domain", {}).items():
        rows = [row for row in document.get("results", ()) if row["operation"] == operation]
        lacking = [str(row["message"]) for row in rows if row["status"] in ("not-provided", "not-applicable")]
        found = document["domain"].get(operation, {})
        alarms += _domain(operation, {**found, "refused": [*found.get("refused", ()), *lacking]}, facts)
    return alarms


def _domain(operation: str, found: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    missing = []
    for kind in ("constants", "precision"):
        for name, due in facts.get(kind, {}).items():
            got = found.get(kind, {}).get(name)
            if got is None or _read(got) != _read(due):
                missing.append(f"{operation}: {name} is {due}, told as {got}")
    for kind in ("refused", "rules"):
        told = list(found.get(kind, ()))
        unmet = [pattern for pattern in facts.get(kind, ()) if not any(re.search(pattern, words) for words in told)]
        missing += [f"{operation}: nothing {kind} matches {pattern!r}: {told}" for pattern in unmet]
    return missing


def _read(value: object) -> str:
    """A measured number to the two digits that a person reads; a word as it is."""
    return f"{value:.2g}" if isinstance(value, int | float) else str(value)


def _of_faulty(document: Mapping[str, Any], expectation: Mapping[str, Any]) -> list[str]:
    findings = document["findings"]
    if not any(finding["weight"] in (*VIOLATING, *_several(expectation["weight"])) for finding in findings):
        return [f"nothing found of: {expectation['fault']}"]
    first, *others = findings
    further = [finding for finding in others if finding["weight"] in ("wrong", "leak")]
    due = [] if _is_due(first, expectation) else [f"the first finding is not the due one: {_told(first)}"]
    return due + ([f"{len(further)} further findings: {'; '.join(map(_told, further))}"] if len(further) > 1 else [])


def _is_due(finding: Finding, expectation: Mapping[str, Any]) -> bool:
    if finding["operation"] not in _several(expectation["operation"]):
        return False
    if finding["weight"] not in _several(expectation["weight"]):
        return False
    words = f"{finding['what']} {finding['when'] or ''}"
    by_words = "match" in expectation and re.search(expectation["match"], words, re.IGNORECASE)
    return bool(by_words) or not set(expectation.get("requirements", ())).isdisjoint(finding["requirements"])


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _told(finding: Finding) -> str:
    when = f" ({finding['when']})" if finding["when"] else ""
    return f"{finding['weight']}: {finding['operation']}: {finding['what']}{when}"
