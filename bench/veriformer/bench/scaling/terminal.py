"""Terminal output of scaling: refuted first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from veriformer.bench.scaling.record import Scaling
from veriformer.bench.verdicts import Verdict

_ORDER = (Verdict.REFUTED, Verdict.INVALID, Verdict.INCONCLUSIVE, Verdict.CONFIRMED)
SIGNS = {
    Verdict.REFUTED: ("✗", "bold red"),
    Verdict.INVALID: ("–", "dim"),
    Verdict.INCONCLUSIVE: ("?", "yellow"),
    Verdict.CONFIRMED: ("✓", "green"),
}


def ranked(found: Iterable[Scaling]) -> list[Scaling]:
    """By verdict, what refutes first."""
    return sorted(found, key=lambda one: _ORDER.index(one.verdict))


def line(one: Scaling) -> str:
    """Format one sweep as one line."""
    span = f" for {one.size} = {one.sizes[0]} … {one.sizes[-1]}" if one.elasticity is not None else ""
    return f"{one.verdict.value:<12} {one.name}: {one.reason}{span}"


def summary(found: Sequence[Scaling]) -> str:
    """Return the number of sweeps by verdict, as text."""
    counts = Counter(one.verdict for one in found)
    return ", ".join(f"{counts[v]} {v.value}" for v in _ORDER if counts[v]) or "nothing that could be timed"
