"""Exact counts and symbolic costs as the page shows them, and the looks of verdicts."""

from __future__ import annotations

from veriformer.bench.document import Benchmarks, Count
from veriformer.bench.regression.record import SIGNS as CHANGE_SIGNS
from veriformer.bench.regression.record import History
from veriformer.bench.statistics import Change
from veriformer.bench.verdicts import SIGNS, Verdict

TONES = {"green": "good", "bold red": "bad", "yellow": "warn", "dim": "muted"}
"""Names of colours in the style sheet, by styles of a terminal."""


def look(verdict: Verdict | Change) -> tuple[str, str, str]:
    """Return sign, word and colour of a verdict."""
    sign, style = CHANGE_SIGNS[verdict] if isinstance(verdict, Change) else SIGNS[verdict]
    return sign, verdict.value, TONES[style]


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


def comparison(count: Count) -> str:
    """Return the text of a confirmation."""
    if count.claim is None:
        return "nothing is predicted"
    if count.reason:
        return count.reason
    if count.claim.kind == "equal":
        return "equal as polynomials"
    return f"of degree {count.claim.degree} in n"


def fixed(count: Count) -> str:
    """Return the values of the letters that did not vary."""
    return ", ".join(f"{name}\u00a0=\u00a0{value}" for name, value in count.fixed.items())


def witness(count: Count) -> str:
    """Return the call at which count and prediction differ."""
    found = count.witness
    if found is None:
        return ""
    point = ", ".join(f"{name} = {value}" for name, value in found.point.items())
    return f"at {point}: counted {found.counted}, predicted {found.claimed}"


def groups(benchmarks: Benchmarks) -> dict[str, list[Count]]:
    """Return all counts, by quantity."""
    found: dict[str, list[Count]] = {}
    for count in benchmarks.counts:
        found.setdefault(count.quantity, []).append(count)
    return found


def letters(benchmarks: Benchmarks) -> str:
    """Return the letters of all that was counted, each with what it stands for."""
    used = {name for count in benchmarks.counts for name in (*count.grid, *count.fixed)}
    return ", ".join(f"{name} {said}" for name, said in LETTERS.items() if name in used)


def sentence(benchmarks: Benchmarks) -> str:
    """Return all counts in one sentence."""
    named = [f"{number} {verdict}" for verdict, number in benchmarks.summary.items()]
    return f"{', '.join(named)}." if named else "Nothing was counted."


def changes(one: History) -> list[str]:
    """Return where the times of a history changed, in words; the latest first."""
    words = {True: "slower", False: "faster"}
    return [
        f"{abs(level.ratio - 1):.0%} {words[level.ratio > 1]} since {one.version[level.start]}, {one.when[level.start]}"
        for level in reversed(one.levels)
    ]
