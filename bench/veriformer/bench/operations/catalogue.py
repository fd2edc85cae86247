"""Every family of calls, and which operations of the contract there are without one."""

from __future__ import annotations

from veriformer.bench.operations import attention, layers, optimization, positions, scores
from veriformer.bench.operations.family import Family

FAMILIES: tuple[Family, ...] = (
    *scores.FAMILIES,
    *layers.FAMILIES,
    *attention.FAMILIES,
    *positions.FAMILIES,
    *optimization.FAMILIES,
)

PLAIN = {
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), "a number per step, by no operator of PyTorch"),
    **dict.fromkeys(("bpe_train", "bpe_encode", "unigram_segment"), "text, in plain Python, by no operator of PyTorch"),
    "beam_search": "it ends where the values of its scores say, so that its cost is no polynomial of sizes",
}
"""Operations that counts say nothing of, and why."""


def names() -> list[str]:
    """Every operation of the contract."""
    return [*dict.fromkeys(family.operation for family in FAMILIES), *PLAIN, "causal_lm"]
