"""Exact counts beside the symbolic costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veriformer.bench.document import Benchmarks, Count
from veriformer.bench.verdicts import Verdict

# Verdict to its sign, its word and its colour.
LOOKS = {
    Verdict.CONFIRMED: ("✓", "confirmed", "good"),
    Verdict.REFUTED: ("✗", "refuted", "bad"),
    Verdict.INCONCLUSIVE: ("?", "inconclusive", "warn"),
    Verdict.NOT_COUNTABLE: ("–", "not countable", "muted"),
    Verdict.INVALID: ("–", "invalid", "muted"),
    Verdict.COUNTED: ("·", "counted", "muted"),
}


LETTERS = {
    "B": "texts at once",
    "H": "query heads",
    "G": "key heads",
    "R": "query heads for each key head",
    "N": "rows",
    "n": "tokens",
    "n_q": "queries",
    "n_k": "keys",
    "d": "width, of attention that of a head",
    "d_k": "width of keys",
    "d_v": "width of values",
    "f": "inner width",
    "o": "outer width",
    "V": "vocabulary",
    "E": "experts",
    "L": "layers",
    "P": "parameters",
    "t": "tokens before",
    "s": "steps",
    "W": "tokens of a window",
    "m": "max_length of a cache",
    "T": "side of a block",
    "w": "bytes of an element",
}
"""Meanings of the letters of sizes."""


@dataclass(frozen=True)
class CostRow:
    """A count, ready to be shown."""

    count: Count

    @property
    def look(self) -> tuple[str, str, str]:
        """Sign, word and colour of its verdict."""
        return LOOKS[self.count.verdict]

    @property
    def comparison(self) -> str:
        """Return the text of a confirmation."""
        if self.count.claim is None:
            return "nothing is predicted"
        if self.count.reason:
            return self.count.reason
        if self.count.claim.kind == "equal":
            return "equal as polynomials"
        return f"of degree {self.count.claim.degree} in n"

    @property
    def letters(self) -> str:
        """Return the values of the letters that did not vary."""
        return ", ".join(f"{name}\u00a0=\u00a0{value}" for name, value in self.count.fixed.items())

    @property
    def grid(self) -> str:
        """The grid that was counted on, for who wants to know."""
        axes = (f"{name} ∈ {{{', '.join(map(str, axis['nodes']))}}}" for name, axis in self.count.grid.items())
        beyond = ", ".join(f"{name} = {axis['beyond']}" for name, axis in self.count.grid.items())
        return f"{'; '.join(axes)}; and off the grid {beyond}"

    @property
    def witness(self) -> str:
        """The call at which count and prediction differ."""
        witness = self.count.witness
        if witness is None:
            return ""
        point = ", ".join(f"{name} = {value}" for name, value in witness.point.items())
        return f"at {point}: counted {witness.counted}, predicted {witness.claimed}"


@dataclass(frozen=True)
class CostGroup:
    """The counts of one quantity."""

    quantity: str
    rows: tuple[CostRow, ...]


def groups(benchmarks: Benchmarks) -> list[CostGroup]:
    """All counts, by quantity."""
    quantities = dict.fromkeys(count.quantity for count in benchmarks.counts)
    return [CostGroup(q, _rows([count for count in benchmarks.counts if count.quantity == q])) for q in quantities]


def letters(benchmarks: Benchmarks) -> str:
    """The letters of all that was counted, each with what it stands for."""
    used = {name for count in benchmarks.counts for name in (*count.grid, *count.fixed)}
    return ", ".join(f"{name} {said}" for name, said in LETTERS.items() if name in used)


def sentence(benchmarks: Benchmarks) -> str:
    """All counts in one sentence."""
    named = [f"{number} {verdict}" for verdict, number in benchmarks.summary.items()]
    return f"{', '.join(named)}." if named else "Nothing was counted."


def _rows(counts: Sequence[Count]) -> tuple[CostRow, ...]:
    return tuple(CostRow(count) for count in counts)
