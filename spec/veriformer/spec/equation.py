"""The records of the specification: equations, the steps that derive them, and the errata of their sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class Scope(StrEnum):
    """Scope of a derivation step."""

    ALL = "proved for all n"
    ENUMERATED = "proved for small n"
    NUMERIC = "confirmed numerically"


@dataclass(frozen=True)
class Source:
    """Where a statement stands: the document's number, its section and the line."""

    document: str
    section: str
    line: int

    def __str__(self) -> str:
        return f"{self.document}, section {self.section}, line {self.line}"


@dataclass(frozen=True)
class Symbol:
    """A letter of a statement: its name and space in LaTeX, what it means, what is assumed of it."""

    name: str
    space: str
    meaning: str
    assumptions: str = ""


@dataclass(frozen=True)
class Assumption:
    """Condition of a statement, in words, and as a predicate over a sample of the equation's arguments."""

    text: str
    holds: Callable[[Mapping[str, Any]], bool]


Identities = Iterable[tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Step of a derivation: a claim, and the identities of SymPy expressions (left, right) that make it up.

    `step` makes one of a function.
    """

    slug: str
    claim: str
    identity: Callable[[], Identities]
    scope: Scope = Scope.ALL
    scope_detail: str = ""


def step(slug: str = "", *, scope: Scope = Scope.ALL, detail: str = "") -> Callable[[Callable[[], Identities]], Step]:
    """Make a step of the function that yields its identities; the function's docstring is the claim.

    slug: by default the function's name in words ("mean-zero" for `_mean_zero`). detail: how far the scope reaches.
    """

    def record(identity: Callable[[], Identities]) -> Step:
        claim = " ".join((identity.__doc__ or "").split())
        if not claim:
            raise ValueError(f"step {_name(identity)}: expected its claim as the docstring of the function, got none")
        return Step(slug=slug or _name(identity), claim=claim, identity=identity, scope=scope, scope_detail=detail)

    return record


def _name(function: Callable[[], Any]) -> str:
    return function.__name__.strip("_").replace("_", "-")


@dataclass(frozen=True)
class Evidence:
    """Evidence of a counterexample: at this point the statement as printed says one thing, and another is true.

    letters, values: those of the correction, with which its formulas are read (`proofs.latex_reader.stated`).
    """

    point: str
    claimed: Any
    actual: Any
    letters: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    values: tuple[Any, ...] = field(default=(), kw_only=True)

    @property
    def refutes(self) -> bool:
        """True if the counterexample still is one."""
        return bool(self.claimed != self.actual)

    def __str__(self) -> str:
        return self.told("the truth is")

    def told(self, other: str) -> str:
        """Describe the evidence, with the words that introduce the other value."""
        return f"{self.point}: the statement gives {_words(self.claimed)}, {other} {_words(self.actual)}"


def _words(value: Any) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


ERRATUM_KINDS = ("wrong", "imprecise", "contradictory", "convention")


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A statement of a source that does not hold as printed.

    kind: "wrong" where what is printed is false; "imprecise" where it needs an assumption that is not printed;
    "contradictory" where two places of the documents cannot both be followed; "convention" where what is printed is a
    choice that can be followed, and others, this project or the cited source among them, choose otherwise.
    """

    slug: str
    kind: str
    source: Source
    printed: str
    corrected: str
    counterexample: Callable[[], Evidence]

    def __post_init__(self) -> None:
        if self.kind not in ERRATUM_KINDS:
            raise ValueError(f"kind: expected one of {', '.join(ERRATUM_KINDS)}, got {self.kind!r}")

    @property
    def told(self) -> str:
        """Its counterexample in words. Of another convention nobody says that it is the truth."""
        evidence = self.counterexample()
        return evidence.told("elsewhere it is") if self.kind == "convention" else str(evidence)


def erratum(
    slug: str = "", *, kind: str, source: Source, printed: str, corrected: str
) -> Callable[[Callable[[], Evidence]], Erratum]:
    """Make an erratum of the function that gives its counterexample; slug: by default that function's name in words."""

    def record(counterexample: Callable[[], Evidence]) -> Erratum:
        return Erratum(
            slug=slug or _name(counterexample),
            kind=kind,
            source=source,
            printed=printed,
            corrected=corrected,
            counterexample=counterexample,
        )

    return record


@dataclass(frozen=True, kw_only=True)
class Equation:
    """An equation: what is printed, what its letters mean, the formula that computes it, and why it is true.

    number: the source's number ("24a"), or None where the source gives none.
    statement: LaTeX, as printed. sample: draws arguments of the statement, by name, on which `assumptions` can be
    tried. costs: name to a function that gives a SymPy expression.
    """

    slug: str
    number: str | None
    title: str
    statement: str
    sources: tuple[Source, ...]
    symbols: tuple[Symbol, ...]
    steps: tuple[Step, ...]
    assumptions: tuple[Assumption, ...] = ()
    sample: Callable[[np.random.Generator], dict[str, Any]] | None = None
    formula: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    costs: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    errata: tuple[Erratum, ...] = ()

    @property
    def label(self) -> str:
        """The number, or the slug where there is none: what selects this equation."""
        return self.number or self.slug
