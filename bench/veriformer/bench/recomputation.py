"""Gradient checkpointing: what the backward pass computes again, so as to keep less until then.

It costs up to one forward pass more, and is no fault. What computes more than that again, or does so before any
gradient is sought, is held to the formula as it is.
"""

from __future__ import annotations

from veriformer.bench.quantities import BETWEEN, FORWARD, RECOMPUTED
from veriformer.bench.recovery import Recovered
from veriformer.spec.costs import symbol


def allowed(found: Recovered) -> list[int]:
    """FLOPs that each call may have beside the formula's: those computed again, none where that is too much."""
    return [0 if excess(found) else counts.get(RECOMPUTED, 0) for _, counts in found.counted]


def excess(found: Recovered) -> bool:
    """Return whether more is recomputed than the forward pass computed."""
    return any(counts.get(RECOMPUTED, 0) > counts.get(FORWARD, 0) for _, counts in found.counted)


def said(found: Recovered) -> str | None:
    """Describe the cost of checkpointing and what it keeps; None where nothing is recomputed."""
    counts = found.counted[-1][1]
    if not counts.get(RECOMPUTED):
        return None
    share = counts[RECOMPUTED] / counts[FORWARD] if counts[FORWARD] else float("inf")
    if share > 1:
        return f"the backward pass computes the forward pass again more than once: {share:.3g} times"
    times = "one forward pass more" if share == 1 else f"{share:.3g} of a forward pass more"
    return f"the backward pass recomputes the forward pass (checkpointing): {times}{_kept(found)}"


def _kept(found: Recovered) -> str:
    kept = found.polynomials.get(BETWEEN)
    return f"; between the passes only {kept.expression(symbol)} bytes are kept" if kept is not None else ""
