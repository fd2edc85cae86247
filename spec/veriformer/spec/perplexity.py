"""Perplexity (equation 41)."""

from __future__ import annotations

from typing import Any

from veriformer.spec.cross_entropy import cross_entropy, cross_entropy_vjp


def perplexity(xp: Any, logits: Any, target: Any, *, ignore_index: int = -100) -> Any:
    """PPL = exp(−(1/T) Σ_t log P(x_t | x_{<t})) over the T targets that are not ignored; 1 when there are none.

    logits [..., V] at position t score target [...] at position t: nothing is shifted here.
    """
    return xp.exp(cross_entropy(xp, logits, target, ignore_index=ignore_index))


def perplexity_vjp(xp: Any, logits: Any, target: Any, g: Any, *, ignore_index: int = -100) -> Any:
    """d logits = g · PPL · (p − y) / T at every counted position."""
    ppl = perplexity(xp, logits, target, ignore_index=ignore_index)
    return cross_entropy_vjp(xp, logits, target, g * ppl, ignore_index=ignore_index)[0]
