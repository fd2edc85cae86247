"""Statements of the source documents in their own words, and what became of each: proved, refuted, or beyond proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from veriformer.spec.equation import Erratum, Scope, Source, Step

REASONS = {
    "notation": "a notation: it names things or their shapes, or gives the numbers of an example, "
    "and says nothing that could be false",
    "trained": "a statement on trained models: it depends on data, training and measure, none of which is given",
    "machine": "a statement on machines and programs: it depends on their bandwidth and speed, which are not given",
    "quality": "no measure of quality is given by which it could be judged",
    "advice": "advice: what is to be achieved, and by what measure, is not said",
    "practice": "a description of practice, which nothing derived could contradict",
    "size": "a choice of size, which any other could replace",
    "tables": "entries of learned tables that are not given",
    "analogy": "an analogy: it illustrates what is stated elsewhere, and is about no Transformer",
    "plan": "it says what the document is about to do, or has done",
    "run": "code, or what it prints: a test runs it as it is printed, and it prints just that, to four digits",
}
"""Why nothing decides a statement, by a word; other reasons stand in the rows themselves."""

_FURTHEST_LAST = (Scope.NUMERIC, Scope.ENUMERATED, Scope.ALL)


@dataclass(frozen=True)
class Quotation:
    """The exact words of a document, white space aside, and where they begin: line and column, both from 1."""

    document: str
    line: int
    column: int
    words: str


@dataclass(frozen=True)
class SourceStatement:
    """A formula, a number, a sentence or a piece of code of a source.

    quoted: its words, in every document that has them. text: what is claimed, as briefly as a formula says it.
    decided_by: the steps that entail the quoted words, or the erratum that refutes them, as "equation:step"; an
    equation alone where they are the definition that it states. left_out: those of the quoted words that are not
    entailed. reason: where nothing decides it, a word of `REASONS` or a sentence.
    """

    source: Source
    text: str
    decided_by: str = ""
    reason: str = ""
    quoted: tuple[Quotation, ...] = ()
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.decided_by) == bool(self.reason):
            raise ValueError(
                f"statement {self.text!r} ({self.source}): expected either what decides it or a reason why nothing "
                f"does, got decided_by={self.decided_by!r}, reason={self.reason!r}"
            )

    @property
    def quotation(self) -> str:
        """The words of the first document that has them."""
        return self.quoted[0].words if self.quoted else ""

    @property
    def equations(self) -> frozenset[str]:
        """The slugs of the equations that decide it."""
        return frozenset(name.partition(":")[0] for name in self.decided_by.split())

    @property
    def why(self) -> str:
        """The reason in full."""
        return REASONS.get(self.reason, self.reason)

    @property
    def scope(self) -> str:
        """Scope of the steps that entail it: that of the step which reaches least. Code that is run is confirmed
        numerically; of anything else without steps there is nothing to say.
        """
        if self.reason == "run":
            return str(Scope.NUMERIC)
        scopes = {found.scope for found in self._deciding if isinstance(found, Step)}
        return next((str(scope) for scope in _FURTHEST_LAST if scope in scopes), "")

    @property
    def verdict(self) -> str:
        """Verdict on the statement: what the steps prove or the erratum refutes, if they hold; a definition is
        "defined".
        """
        if not self.decided_by:
            return {"notation": "defined", "run": "confirmed"}.get(self.reason, "not checkable")
        if ":" not in self.decided_by:
            if self.decided_by not in _equations():
                raise LookupError(f"statement {self.text!r}: no equation is called {self.decided_by!r}")
            return "defined"
        errata = [found for found in self._deciding if isinstance(found, Erratum)]
        if errata:
            return "refuted" if errata[0].kind == "wrong" else errata[0].kind
        return "confirmed" if self.scope == Scope.NUMERIC else "proved"

    @property
    def _deciding(self) -> list[Step | Erratum]:
        names = self.decided_by.split() if ":" in self.decided_by else []
        unknown = [name for name in names if name not in _entries()]
        if unknown:
            raise LookupError(f"statement {self.text!r}: no step or erratum is called {unknown[0]!r}")
        return [_entries()[name] for name in names]


@cache
def _equations() -> frozenset[str]:
    from veriformer.spec.registry import equations

    return frozenset(e.slug for e in equations())


@cache
def _entries() -> dict[str, Step | Erratum]:
    from veriformer.spec.registry import equations

    found: dict[str, Step | Erratum] = {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}
    return found | {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata}
