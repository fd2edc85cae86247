"""A requirement: one thing the mathematics demands of an implementation, and the bugs that demanding it catches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kind of evidence that a violation of a requirement is."""

    CONTRACT = "contract"  # shapes, dtypes, purity, layout
    EQUATION = "equation"  # equality with the printed formula
    GRADIENT = "gradient"  # equality with the proved vector-Jacobian product
    LAW = "law"  # a theorem that holds whatever the formula's text
    NUMERICS = "numerics"  # range and accuracy, beyond algebra
    REFUSAL = "refusal"  # bad input is refused
    CONVENTION = "convention"  # a documented choice that may be claimed otherwise


class Weight(StrEnum):
    """Weight of a requirement that is not met, the gravest first.

    The first two are said of ordinary calls only; the last three violate nothing unless asked for.
    """

    WRONG = "wrong"  # value, gradient, law or state contradicts the mathematics on ordinary input
    LEAK = "leak"  # information from where none may come: future, mask, other sequence or row, stale cache
    FRAGILE = "fragile"  # only near the edge of the dtype's range, or for extreme or degenerate input
    WEAKNESS = "weakness"  # fragile, and PyTorch's own operator, or the formula step by step, does likewise
    IMPRECISE = "imprecise"  # within the bound of a coarser format, but worse than it need be
    UNGUARDED = "unguarded"  # bad input is accepted, or refused unhelpfully

    @property
    def advice(self) -> bool:
        """Return whether a finding of this weight violates nothing unless it is asked for strictly."""
        return self in (Weight.WEAKNESS, Weight.IMPRECISE, Weight.UNGUARDED)

    def at_least(self, other: Weight) -> bool:
        """Return whether this weight is as grave as another, or graver."""
        order = list(Weight)
        return order.index(self) <= order.index(other)


OF_REQUIREMENTS = tuple(weight for weight in Weight if weight is not Weight.WEAKNESS)
"""Weights that requirements have: a weakness is said of findings alone."""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Requirement on an operation, with its evidence, weight and precedents.

    slug: permanent name, ``operation.law`` such as ``attention.causality``.
    operation: a name of the operations contract.
    statement: the law over the real numbers (words, with LaTeX between dollar signs).
    floating_point_statement: the same law as it holds for floating-point numbers, which is what is judged.
    kind: the kind of evidence.
    weight: what is at stake where it is not met.
    equations: numbers of the source documents' equations it rests on, as strings (``"24a"``).
    prerequisites: slugs that must hold first; where one fails, this one is blocked, not failed.
    bug_class: the class of bug a violation is.
    precedents: public issues or pull requests that were such bugs.
    """

    slug: str
    operation: str
    statement: str
    floating_point_statement: str
    kind: Kind
    weight: Weight
    equations: tuple[str, ...] = ()
    prerequisites: tuple[str, ...] = ()
    bug_class: str = ""
    precedents: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.slug.startswith(f"{self.operation}."):
            raise ValueError(
                f"slug: expected {self.operation + '.'!r}… for an operation's requirement, got {self.slug!r}"
            )
