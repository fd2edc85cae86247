"""Claims of the source documents, and what became of each: proved, refuted, or beyond proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from veriformer.spec.equation import Erratum, Scope, Source, Step


@dataclass(frozen=True)
class Claim:
    """A formula, a number or a sentence of a source.

    by: the step or erratum that decides it, as "equation:step"; or, where nothing can, reason: why not.
    """

    source: Source
    text: str
    by: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if bool(self.by) == bool(self.reason):
            raise ValueError(f"claim {self.text!r}: expected either what decides it or a reason, got {self.by!r}")

    @property
    def verdict(self) -> str:
        """What the step proves or the erratum refutes, if they hold; else "not checkable"."""
        if not self.by:
            return "not checkable"
        found = _deciding().get(self.by)
        if isinstance(found, Step):
            return "confirmed" if found.scope is Scope.NUMERIC else "proved"
        if isinstance(found, Erratum):
            return "refuted" if found.kind == "wrong" else found.kind
        raise LookupError(f"claim {self.text!r}: no step or erratum is called {self.by!r}")


@cache
def _deciding() -> dict[str, Step | Erratum]:
    from veriformer.spec.registry import equations

    found: dict[str, Step | Erratum] = {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}
    return found | {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata}


Row = tuple[str, str, int, str, str]
"""Document, section, line, what is said, and what decides it, or why nothing does."""


def claims(decided: Iterable[Row], undecided: Iterable[Row]) -> tuple[Claim, ...]:
    """Claims from tables of rows."""
    known = [Claim(Source(document, section, line), text, by=by) for document, section, line, text, by in decided]
    open_ = [
        Claim(Source(document, section, line), text, reason=why) for document, section, line, text, why in undecided
    ]
    return (*known, *open_)
