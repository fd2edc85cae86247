"""Statements of the source documents, and what became of each: proved, refuted, or beyond proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from veriformer.spec.equation import Erratum, Scope, Source, Step


@dataclass(frozen=True)
class SourceStatement:
    """A formula, a number or a sentence of a source.

    decided_by: the step or erratum that decides it, as "equation:step"; or, where nothing can, reason: why not.
    """

    source: Source
    text: str
    decided_by: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if bool(self.decided_by) == bool(self.reason):
            raise ValueError(
                f"statement {self.text!r} ({self.source}): expected either what decides it or a reason why nothing "
                f"does, got decided_by={self.decided_by!r}, reason={self.reason!r}"
            )

    @property
    def equation(self) -> str:
        """The slug of the equation whose step or erratum decides it, or nothing."""
        return self.decided_by.partition(":")[0]

    @property
    def verdict(self) -> str:
        """What the step proves or the erratum refutes, if they hold; else "not checkable"."""
        if not self.decided_by:
            return "not checkable"
        found = _deciding().get(self.decided_by)
        if isinstance(found, Step):
            return "confirmed" if found.scope is Scope.NUMERIC else "proved"
        if isinstance(found, Erratum):
            return "refuted" if found.kind == "wrong" else found.kind
        raise LookupError(f"statement {self.text!r}: no step or erratum is called {self.decided_by!r}")


@cache
def _deciding() -> dict[str, Step | Erratum]:
    from veriformer.spec.registry import equations

    found: dict[str, Step | Erratum] = {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}
    return found | {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata}
