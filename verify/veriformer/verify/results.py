"""The result schema: records, the verdict that follows from them, and reading and writing ``results.json``.

The schema itself ships as ``schema/results-1.json``; whatever is read or written is validated against it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_NAME = "veriformer/results/1"


class Status(StrEnum):
    """What became of one row. Green never hides what did not run."""

    PASS = "pass"
    FAIL = "fail"
    DEVIATION = "deviation"
    KNOWN_FAIL = "known-fail"
    UNEXPECTED_PASS = "unexpected-pass"
    NOT_PROVIDED = "not-provided"
    NOT_APPLICABLE = "not-applicable"
    BLOCKED = "blocked"
    VACUOUS = "vacuous"
    TIMEOUT = "timeout"
    CRASH = "crash"
    HARNESS_ERROR = "harness-error"


VIOLATIONS = frozenset({Status.FAIL, Status.TIMEOUT, Status.CRASH, Status.UNEXPECTED_PASS})
"""Statuses that make the exit status 1."""

BLOCKING = VIOLATIONS | {Status.BLOCKED, Status.HARNESS_ERROR}
"""Statuses of a prerequisite that block what rests on it."""


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """The smallest failing call that was found.

    arguments: by name, each a dict of ``dtype``, ``shape`` and ``values`` for a tensor, or a plain value.
    observed, exact, bound: nested lists of numbers at the elements judged, or None where the violation is not a number.
    script: a self-contained Python script whose exit status is not 0 where the violation is reproduced.
    scalars: how many numbers the tensors of all its calls have together.
    """

    arguments: dict[str, Any]
    observed: Any
    exact: Any
    bound: Any
    script: str | None
    scalars: int | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """One row: a requirement on one operation, in one dtype, on one device.

    suggestion: ``convention`` and ``value`` of the claim under which a row that failed would hold.
    """

    requirement: str
    operation: str
    equations: list[str]
    dtype: str | None
    device: str
    status: Status
    examples: int = 0
    worst_ratio: float | None = None
    vacuous_share: float | None = None
    seconds: float = 0.0
    message: str | None = None
    bug_class: str | None = None
    blocked_by: str | None = None
    counterexample: Counterexample | None = None
    kind: str | None = None
    suggestion: dict[str, str] | None = None

    @property
    def key(self) -> str:
        """What tells this row from every other of the same run."""
        return f"{self.requirement}[{self.dtype}-{self.device}]"

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Result:
        """The record of one entry of ``results``."""
        example = row.get("counterexample")
        known = {**row, "status": Status(row["status"])}
        return cls(**{**known, "counterexample": Counterexample(**example) if example else None})

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``results`` for this record."""
        return asdict(self)


@dataclass(kw_only=True)
class Results:
    """One run of the suite against one implementation."""

    suite: dict[str, Any]
    implementation: dict[str, Any]
    environment: dict[str, Any]
    profile: str
    seed: str
    started: str
    duration_s: float
    planned: int
    results: list[Result] = field(default_factory=list)
    domain: dict[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, int]:
        """How many rows ended in each status."""
        counts = Counter(result.status.value for result in self.results)
        return {status.value: counts[status.value] for status in Status if counts[status.value]}

    @property
    def violations(self) -> list[Result]:
        """The rows that make the run fail."""
        return [result for result in self.results if result.status in VIOLATIONS]

    @property
    def valid(self) -> bool:
        """Whether everything planned was run and the suite itself made no error."""
        clean = all(result.status is not Status.HARNESS_ERROR for result in self.results)
        return clean and len(self.results) == self.planned

    @property
    def exit_status(self) -> int:
        """0 nothing violated, 1 at least one violation, 3 the verdict is invalid."""
        if not self.valid:
            return 3
        return 1 if self.violations else 0

    def to_dict(self) -> dict[str, Any]:
        """The whole of ``results.json``."""
        return {
            "schema": SCHEMA_NAME,
            "suite": self.suite,
            "implementation": self.implementation,
            "environment": self.environment,
            "profile": self.profile,
            "seed": self.seed,
            "started": self.started,
            "duration_s": self.duration_s,
            "planned": self.planned,
            "run": len(self.results),
            "summary": self.summary,
            "domain": self.domain,
            "results": [result.to_dict() for result in self.results],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Results:
        """Read a document, after validating it. Raises ValueError that says where it breaks the schema."""
        validate(document)
        names = ("suite", "implementation", "environment", "profile", "seed", "started", "duration_s", "planned")
        rows = [Result.from_dict(row) for row in document["results"]]
        return cls(**{name: document[name] for name in names}, results=rows, domain=document.get("domain", {}))

    def to_pandas(self) -> pd.DataFrame:
        """One line per row, the counterexample left out."""
        import pandas as pd

        rows = [{key: value for key, value in r.to_dict().items() if key != "counterexample"} for r in self.results]
        return pd.DataFrame(rows)


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of ``results.json``."""
    text = resources.files("veriformer.verify").joinpath("schema/results-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(document: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first place where the document breaks the schema."""
    import jsonschema

    errors: Iterable[jsonschema.ValidationError] = jsonschema.Draft202012Validator(schema()).iter_errors(document)
    first = min(errors, key=lambda error: list(map(str, error.path)), default=None)
    if first is not None:
        place = "/".join(map(str, first.path)) or "the document"
        raise ValueError(f"results: {place}: {first.message}")


def write(results: Results, path: Path) -> None:
    """Write ``results.json``, so that a reader never meets half a file."""
    document = json_safe(results.to_dict())
    validate(document)
    write_json(document, path)


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Write a JSON document in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    half.replace(path)


def read(path: Path) -> Results:
    """Read and validate ``results.json``. Raises ValueError naming the file for anything else."""
    try:
        return Results.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a results file ({SCHEMA_NAME}): {error}") from error


def json_safe(value: Any) -> Any:
    """The same value with NaN and infinities as the strings ``"nan"``, ``"inf"``, ``"-inf"``, which JSON can hold."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, Mapping):
        return {str(key): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)
