"""``benchmarks.json``: records, reading and writing.

The schema itself ships as ``schema/benchmarks-1.json``; whatever is read or written is validated against it.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from veriformer.bench.regression.record import History, Regression
from veriformer.bench.scaling.record import Scaling
from veriformer.bench.verdicts import Verdict
from veriformer.spec import suite

if TYPE_CHECKING:
    import sympy

SCHEMA_NAME = "veriformer/benchmarks/1"


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A formula as text and as LaTeX."""

    text: str
    latex: str


def expression(formula: sympy.Expr) -> Expression:
    """Return a SymPy expression as text and LaTeX."""
    import sympy  # which takes long, and who reads what was measured needs none of it

    return Expression(text=str(formula), latex=sympy.latex(formula))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Prediction of the specification: this very polynomial (kind "equal"), or one of this degree in n ("growth")."""

    kind: str
    text: str
    latex: str
    degree: int | None = None


@dataclass(frozen=True, kw_only=True)
class Witness:
    """A call at which the count is another than predicted."""

    point: dict[str, int]
    counted: int
    claimed: int | str


@dataclass(frozen=True, kw_only=True)
class Count:
    """Counts of one quantity of one target on a grid of shapes, and the verdict on the specification's prediction."""

    target: str
    operation: str
    case: str
    passes: str
    quantity: str
    grid: dict[str, dict[str, Any]] = field(default_factory=dict)
    fixed: dict[str, int | str] = field(default_factory=dict)
    points: int = 0
    measured: Expression | None = None
    claim: Claim | None = None
    verdict: Verdict
    reason: str | None = None
    witness: Witness | None = None
    seconds: float = 0.0
    modelled: list[str] = field(default_factory=list)
    """Operators whose inside is not seen: a formula says what they do."""
    tensors: str = "fake"


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Lower bound of a ratio (kind "at least"), or upper bound ("at most")."""

    kind: str
    ratio: float


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Under what times were measured: turns of each side, threads, clock, and the load of the machine around it."""

    rounds: int
    threads: int
    clock: str
    load: list[float]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Ours beside something else, as a ratio ours / theirs of one quantity; `ratio` is None where there is none.

    interval: where the median ratio lies, at 95 %. noise: how far the ratio of ours to itself, found in the same turns,
    strays from 1, as a factor of at least 1; 1 for what was counted. verdict: on the goal, None where there is no goal
    or no ratio; then the reason says why.
    """

    case: str
    what: str
    theirs: str
    quantity: str
    values: dict[str, float] = field(default_factory=dict)
    ratio: float | None = None
    interval: list[float] | None = None
    noise: float | None = None
    goal: Goal | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    conditions: Conditions | None = None


@dataclass(frozen=True, kw_only=True)
class Tries:
    """Number of events in a number of tries, and the 95 % interval of the probability."""

    what: str
    count: int
    tries: int
    interval: list[float]


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Error rates of the regression gate: false alarms on identical code, and planted slowdowns that it finds."""

    false_alarms: list[Tries]
    found: list[Tries]


@dataclass(kw_only=True)
class Benchmarks:
    """Record of one run of the benchmarks."""

    suite: dict[str, Any]
    environment: dict[str, Any]
    started: str
    duration_s: float
    counts: list[Count] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    regressions: list[Regression] = field(default_factory=list)
    scalings: list[Scaling] = field(default_factory=list)
    histories: list[History] = field(default_factory=list)
    gate: Gate | None = None

    @property
    def summary(self) -> dict[str, int]:
        """Return the number of counts by verdict."""
        found = Counter(count.verdict.value for count in self.counts)
        return {verdict.value: found[verdict.value] for verdict in Verdict if found[verdict.value]}

    @property
    def exit_status(self) -> int:
        """1 where a count or a time refutes the specification's cost, or a ratio its goal, else 0."""
        verdicts: list[Any] = [one.verdict for ones in (self.counts, self.peers, self.scalings) for one in ones]
        return int(Verdict.REFUTED in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole of ``benchmarks.json``."""
        return {"schema": SCHEMA_NAME, **asdict(self)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Benchmarks:
        """Read a document, after validating it. Raises ValueError that says where it breaks the schema."""
        validate(document)
        found: Benchmarks = from_entry(cls, {name: value for name, value in document.items() if name != "schema"})
        return found


def joined(found: Sequence[Benchmarks]) -> Benchmarks | None:
    """Join several runs, under the first one's suite and environment; None for no runs."""
    if not found:
        return None
    lists = ("counts", "peers", "regressions", "scalings", "histories")
    rows: dict[str, Any] = {name: [row for one in found for row in getattr(one, name)] for name in lists}
    gate = next((one.gate for one in found if one.gate), None)
    return replace(found[0], **rows, gate=gate, duration_s=sum(one.duration_s for one in found))


def from_entry(kind: Any, entry: Any) -> Any:
    """Return the value of a type that an entry of JSON stands for: a record, a verdict, a list, or None."""
    if is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        return kind(**{name: from_entry(hints[name], value) for name, value in entry.items()})  # type: ignore[operator]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(entry)
    inside = get_args(kind)
    if get_origin(kind) is list:
        return [from_entry(inside[0], one) for one in entry]
    return from_entry(inside[0], entry) if len(inside) == 2 and inside[1] is type(None) and entry is not None else entry


_hints = cache(get_type_hints)


def begin() -> Callable[..., Benchmarks]:
    """Start the clock of a run; return the maker of its record, which takes the fields that were found."""
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter()

    def record(**found: Any) -> Benchmarks:
        seconds = round(time.perf_counter() - clock, 3)
        return Benchmarks(suite=suite.record(), environment=environment(), started=started, duration_s=seconds, **found)

    return record


def environment() -> dict[str, Any]:
    """Return interpreter, PyTorch and platform; nothing names the machine, on which no count depends."""
    import torch  # which takes long, and who reads what was measured needs none of it

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(terse=True),
    }


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of ``benchmarks.json``."""
    text = resources.files("veriformer.bench").joinpath("schema/benchmarks-1.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def validate(document: Mapping[str, Any]) -> None:
    """Raise ValueError that names the first place where the document breaks the schema."""
    import jsonschema

    errors = jsonschema.Draft202012Validator(schema()).iter_errors(document)
    first = min(errors, key=lambda error: list(map(str, error.path)), default=None)
    if first is not None:
        place = "/".join(map(str, first.path)) or "the document"
        raise ValueError(f"benchmarks: {place}: {first.message}")


def write(benchmarks: Benchmarks, path: Path) -> None:
    """Write ``benchmarks.json`` in one step, so that a reader never meets half a file."""
    document = benchmarks.to_dict()
    validate(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def read(path: Path) -> Benchmarks:
    """Read and validate ``benchmarks.json``. Raises ValueError naming the file for anything else."""
    try:
        return Benchmarks.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: expected a benchmarks file ({SCHEMA_NAME}): {error}") from error
