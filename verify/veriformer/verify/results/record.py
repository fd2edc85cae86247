"""The result schema: records, the verdict that follows from them, and reading and writing ``results.json``.

The schema itself ships as ``schema/results-2.json``; whatever is read or written is validated against it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriformer.spec.requirement import Weight
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import writable
from veriformer.verify.results.shard import Shard
from veriformer.verify.results.unseen import omitted_arguments, unjudged_parts, unseen
from veriformer.verify.results.verdict import EXIT_STATUS, VIOLATIONS, Status, Verdict, dtypes_that_hold, gaps
from veriformer.verify.results.words import facts

if TYPE_CHECKING:
    import pandas as pd

SCHEMA_NAME = "veriformer/results/2"
_FIRST = "veriformer/results/1"


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """The smallest failing call that was found.

    arguments: by name, each a dict of ``dtype``, ``shape`` and ``values`` for a tensor, or a plain value.
    observed, exact, bound: nested lists of numbers at the elements judged, or None where the violation is not a number.
    script: a self-contained Python script whose exit status is not 0 where the violation is reproduced.
    scalars: how many numbers the tensors of all its calls have together. ordinary: whether all its calls are ordinary,
    None where nobody looked.
    """

    arguments: dict[str, Any]
    observed: Any
    exact: Any
    bound: Any
    script: str | None
    scalars: int | None = None
    ordinary: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Result:
    """A row: a requirement on an operation, in one dtype, on one device.

    weight: what is at stake, as text; None for a requirement that this version of the suite does not know. finding: the
    id of the finding that explains the row. suggestion: ``convention`` and ``value`` of the claim under which a row
    that failed would hold. refused: by feature, the message with which calls were refused that need not be taken.
    worst_size: how many numbers the tensors of the calls had whose ``worst_ratio`` it is.
    waiver: ``reason``, ``link`` and ``expires`` of the known failure that it is. covered: how many examples had which
    sizes above 64, alone, with another, or with an option: ``{"d_v > 64 and n_k > 64": 9}``. candidate: the function or
    class that was judged, where it is not the first of its operation.
    """

    requirement: str
    operation: str
    equations: list[str]
    dtype: str | None
    device: str
    status: Status
    examples: int = 0
    worst_ratio: float | None = None
    worst_size: int | None = None
    vacuous_share: float | None = None
    covered: dict[str, int] | None = None
    seconds: float = 0.0
    message: str | None = None
    bug_class: str | None = None
    blocked_by: str | None = None
    counterexample: Counterexample | None = None
    kind: str | None = None
    weight: str | None = None
    finding: str | None = None
    suggestion: dict[str, str] | None = None
    refused: dict[str, str] | None = None
    waiver: dict[str, str] | None = None
    candidate: str | None = None

    @property
    def key(self) -> str:
        """Return the name of the row, which no other of its run has."""
        of = "" if self.candidate is None else f"@{self.candidate}"
        return f"{self.requirement}[{self.dtype}-{self.device}]{of}"

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Result:
        """Read an entry of ``results``."""
        example = row.get("counterexample")
        known = {**row, "status": Status(row["status"])}
        return cls(**{**known, "counterexample": Counterexample(**example) if example else None})

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``results`` in results.json."""
        return asdict(self)


@dataclass(kw_only=True)
class Results:
    """A run of the suite against one implementation.

    strict: advice counts, and so does a domain that is narrower than the contract. fail_on: the least weight that
    violates. partial: that a mask, a cache, a state or a branch was not seen is no reason against a verdict. only: what
    was selected, nothing for everything. domain: by operation, what is known of it and of what was run. global_state:
    by operation, or ``loading``, what of the process's state the target has changed. shard: which part of a run this
    is, None for a whole one.
    """

    suite: dict[str, Any]
    implementation: dict[str, Any]
    environment: dict[str, Any]
    profile: str
    seed: str
    started: str
    duration_s: float
    planned: int
    strict: bool = False
    fail_on: Weight = Weight.FRAGILE
    partial: bool = False
    only: list[str] = field(default_factory=list)
    domain: dict[str, Domain] = field(default_factory=dict)
    global_state: dict[str, list[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    shard: Shard | None = None

    @property
    def summary(self) -> dict[str, int]:
        """Return the number of rows in each status."""
        counts = Counter(result.status.value for result in self.results)
        return {status.value: counts[status.value] for status in Status if counts[status.value]}

    @property
    def violations(self) -> list[Result]:
        """The rows that make the run fail."""
        return [result for result in self.results if result.status in VIOLATIONS]

    @property
    def advice(self) -> list[Result]:
        """The rows of lesser requirements that are not met."""
        return [result for result in self.results if result.status is Status.ADVICE]

    @property
    def valid(self) -> bool:
        """Return whether everything planned was run and the suite itself made no error."""
        clean = all(result.status is not Status.HARNESS_ERROR for result in self.results)
        return clean and len(self.results) == self.planned

    @property
    def verdict(self) -> Verdict:
        """Return the verdict: invalid before violated before inconclusive before holds."""
        if not self.valid:
            return Verdict.INVALID
        if self._violated:
            return Verdict.VIOLATED
        return Verdict.INCONCLUSIVE if self.gaps else Verdict.HOLDS

    @property
    def gaps(self) -> list[str]:
        """Why rows without a violation would not show that the implementation holds; nothing where they would."""
        return [*gaps(self.results, self._bounded()), *(() if self.partial else self.unseen)]

    @property
    def unseen(self) -> list[str]:
        """Why the implementation was not judged whole: masks, caches, states and branches that no call reached, and
        what has the name of an operation and could not be judged as it."""
        judged = {row.operation for row in self.results}
        without_domain = omitted_arguments(
            self.implementation, judged - self.domain.keys()
        )  # models, which no probe asks
        return [*unjudged_parts(self.implementation, judged), *without_domain, *unseen(self.domain)]

    @property
    def held(self) -> dict[str, list[str]]:
        """By operation the dtypes in which its equation was answered and was right."""
        return dtypes_that_hold(self.results, self._bounded())

    def weighs(self, weight: Weight) -> bool:
        """Return whether a finding of this weight violates."""
        return self.strict or weight.at_least(self.fail_on)

    @property
    def exit_status(self) -> int:
        """0 it holds, 1 it is violated, 3 there is no verdict."""
        return EXIT_STATUS[self.verdict]

    @property
    def _violated(self) -> bool:
        grave = any(self.weighs(finding.weight) for finding in self.findings)
        narrower = self.strict and any(domain.refused for domain in self.domain.values())
        return bool(self.violations or self.global_state) or grave or narrower

    def _bounded(self) -> frozenset[str]:
        """Return the ids of weaknesses of calls of one kind, which an experiment bore out."""
        weak = (one for one in self.findings if one.weight is Weight.WEAKNESS and one.confirmed and one.when)
        return frozenset(one.id for one in weak)

    def raise_for_findings(self) -> None:
        """Return where the run holds; else raise FindingsError with the findings as the terminal shows them."""
        from veriformer.verify import raise_for  # the face of the package knows how runs are told

        raise_for(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``results.json``."""
        return {
            "schema": SCHEMA_NAME,
            **{name: getattr(self, name) for name in _NAMES},
            "run": len(self.results),
            "summary": self.summary,
            "verdict": self.verdict.value,
            "strict": self.strict,
            "fail_on": self.fail_on.value,
            "partial": self.partial,
            "only": self.only,
            "domain": {operation: domain.to_dict() for operation, domain in self.domain.items()},
            "global_state": self.global_state,
            "findings": [{**finding.to_dict(), "facts": dict(facts(finding))} for finding in self.findings],
            "results": [result.to_dict() for result in self.results],
            **({"shard": self.shard.to_dict()} if self.shard else {}),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Results:
        """Read a document, after validating it.

        Raises ValueError that says where it breaks the schema.
        """
        validate(document)
        return cls(
            **{name: document[name] for name in _NAMES},
            strict=document.get("strict", False),
            fail_on=Weight(document.get("fail_on", Weight.FRAGILE)),
            partial=document.get("partial", False),
            only=list(document.get("only", ())),
            domain={operation: Domain.from_dict(entry) for operation, entry in document["domain"].items()},
            global_state={operation: list(changed) for operation, changed in document.get("global_state", {}).items()},
            findings=[Finding.from_dict(entry) for entry in document["findings"]],
            results=[Result.from_dict(row) for row in document["results"]],
            shard=Shard.from_dict(document["shard"]) if document.get("shard") else None,
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return a line per row, the counterexample left out."""
        import pandas as pd

        rows = [{key: value for key, value in r.to_dict().items() if key != "counterexample"} for r in self.results]
        return pd.DataFrame(rows)


_NAMES = ("suite", "implementation", "environment", "profile", "seed", "started", "duration_s", "planned")


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``results.json``."""
    file = f"schema/results-{SCHEMA_NAME.rpartition('/')[2]}.json"
    text = resources.files("veriformer.verify").joinpath(file).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(document: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first place where the document breaks the schema."""
    import jsonschema

    name = document.get("schema")
    if name != SCHEMA_NAME:
        raise ValueError(f"results: schema: expected {SCHEMA_NAME}, got {name!r}{_whence(name)}")
    errors: Iterable[jsonschema.ValidationError] = jsonschema.Draft202012Validator(schema()).iter_errors(document)
    first = min(errors, key=lambda error: list(map(str, error.path)), default=None)
    if first is not None:
        place = "/".join(map(str, first.path)) or "the document"
        raise ValueError(f"results: {place}: {first.message}")


def _whence(name: object) -> str:
    """Return what to do about a schema that is not known, where it is one of results."""
    if name == _FIRST:
        return ", which versions of veriformer before 0.1.0 wrote and read: write the file again with this one"
    ours = str(name).rpartition("/")[0] == SCHEMA_NAME.rpartition("/")[0]
    return ", of another version of veriformer: install that one, or write the file again with this one" if ours else ""


def write(results: Results, path: Path) -> None:
    """Write ``results.json``, so that a reader never meets half a file.

    Raises ValueError where it breaks the schema, which is an error of ours: it is written all the same.
    """
    document = json_safe(results.to_dict())
    write_json(document, path)
    validate(document)


def write_json(document: Mapping[str, Any], path: Path) -> None:
    """Write a JSON document in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(json_text(document), encoding="utf-8")
    half.replace(path)


def json_text(document: Mapping[str, Any]) -> str:
    """Return a JSON document as files hold it."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path) -> Results:
    """Read and validate ``results.json``. Raises ValueError naming the file for anything else."""
    try:
        return Results.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a results file ({SCHEMA_NAME}): {error}") from error


def json_safe(value: Any) -> Any:
    """Return a value with NaN and infinities as the strings ``"nan"``, ``"inf"``, ``"-inf"``, which JSON can hold."""
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, Mapping):
        return {writable(str(key)): json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(item) for item in value]
    if isinstance(value, str):
        return writable(value)
    return value if value is None or isinstance(value, int | bool) else writable(str(value))
