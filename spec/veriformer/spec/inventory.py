"""Everything that the source documents say, and what became of it: the claims of all topics, and where claims must be.

The places, where a document shows a formula or a number, were found by scanning the documents: displayed formulas and
those rows of theirs with a relation or a number, inline formulas with a relation, and lines and fenced examples with
numbers outside of formulas. A claim covers the places it lies in, so that coverage is computed, not claimed.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from veriformer.spec.claim import Claim
from veriformer.spec.equation import Equation, Source

# Each of these modules holds a tuple CLAIMS.
_MODULES = (
    "foundation_claims",
    "heads.claims",
    "positions.claims",
    "optimization.claims",
    "language.claims",
    "generation.claims",
    "vectors.claims",
    "layers.claims",
    "blocks.claims",
    "efficient.claims",
    "remaining_claims",
)

VERDICTS = ("proved", "confirmed", "refuted", "imprecise", "contradictory", "not checkable")


@dataclass(frozen=True)
class Place:
    """Lines of a document that show something of a kind: "displayed formula", "row of a formula" in one of those,
    "inline formula", or "number".
    """

    document: str
    kind: str
    first: int
    last: int

    def holds(self, source: Source) -> bool:
        """Whether this source lies here."""
        return source.document == self.document and self.first <= source.line <= self.last


@dataclass(frozen=True)
class Item:
    """A claim with its name in the inventory, "document:line.position", and its kind: its place's, or "statement"."""

    id: str
    kind: str
    claim: Claim


@cache
def inventory() -> tuple[Claim, ...]:
    """Every claim, in the order of the documents; what two topics decide alike is listed once."""
    found = [c for name in _MODULES for c in importlib.import_module(f"veriformer.spec.{name}").CLAIMS]
    return tuple(sorted(dict.fromkeys(found), key=lambda c: (c.source.document, c.source.line)))


@cache
def items() -> tuple[Item, ...]:
    """Every claim with its name and kind."""
    seen: Counter[tuple[str, int]] = Counter()
    found = []
    for claim in inventory():
        where = claim.source.document, claim.source.line
        seen[where] += 1
        found.append(Item(f"{where[0]}:{where[1]}.{seen[where]}", _kind(claim.source), claim))
    return tuple(found)


def decided_by(equations: Sequence[Equation], *, everything: bool) -> tuple[Item, ...]:
    """The items that these equations decide; with everything, also those that nothing decides."""
    slugs = {e.slug for e in equations}
    return tuple(i for i in items() if (i.claim.by.partition(":")[0] in slugs if i.claim.by else everything))


def counts(found: Iterable[Item]) -> dict[str, int]:
    """How many items have which verdict."""
    by_verdict = Counter(i.claim.verdict for i in found)
    return {verdict: by_verdict[verdict] for verdict in VERDICTS}


@cache
def places() -> tuple[Place, ...]:
    """Where the documents show formulas and numbers."""
    data = json.loads(files("veriformer.spec").joinpath("inventory_blocks.json").read_text(encoding="utf-8"))
    return tuple(
        Place(document, kind, first, last)
        for document, kinds in data.items()
        for kind, lines in kinds.items()
        for first, last in lines
    )


def uncovered() -> tuple[Place, ...]:
    """The places in which no claim lies."""
    return tuple(p for p in places() if not any(p.holds(c.source) for c in inventory()))


def _kind(source: Source) -> str:
    # A row's formula is listed before it.
    return next((p.kind for p in places() if p.holds(source)), "statement")
