"""A finding: one root cause of what does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from veriformer.spec.requirement import Weight


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Finding: a fault and its condition, with everything that it explains.

    id: stable between runs of the same target where the cause is the same. what: one sentence. when: the smallest
    condition on calls that separates those that fail from those that hold, in words; None where every call fails.
    requirements: slugs, the most telling first. rows: keys of the rows explained. counterexample: as in results.json.
    precedents: links to public bugs of the kind. suggestion: the claim under which nothing would be wrong.
    confirmed: whether an experiment bore the condition out. follows: the operation of the same implementation without
    whose fault nothing would be wrong, where no finding of that operation explains the rows. witness: the practice
    that does likewise on the calls that fail (PyTorch's own operator, or the formula step by step in their dtype).
    where: file and line of the code that was judged, None where it has no Python file. fix: one sentence of what to
    change, wherever the cause is confirmed or a known fault gives the same numbers.
    """

    id: str
    weight: Weight
    operation: str
    what: str
    when: str | None = None
    dtypes: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    counterexample: Mapping[str, Any] | None = None
    precedents: tuple[str, ...] = ()
    suggestion: Mapping[str, str] | None = None
    confirmed: bool = False
    message: str | None = None
    follows: str | None = None
    witness: str | None = None
    where: Mapping[str, Any] | None = None
    fix: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``findings`` in results.json."""
        return {**asdict(self), "weight": self.weight.value}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Finding:
        """Read an entry of ``findings``."""
        known = {key: value for key, value in entry.items() if key != "facts"}  # which the others say in words
        lists = {key: tuple(entry.get(key) or ()) for key in ("dtypes", "requirements", "rows", "precedents")}
        return cls(**{**known, **lists, "weight": Weight(entry["weight"])})


def together(
    found: Sequence[Finding], names: Sequence[str] = ("dtypes", "requirements", "rows", "precedents")
) -> dict[str, Any]:
    """Return what several findings list under these names, each entry once."""
    return {name: tuple(dict.fromkeys(value for one in found for value in getattr(one, name))) for name in names}


def likewise(witness: str | None) -> str:
    """Return the end of a sentence that names the practice that does likewise; nothing where none does."""
    return "" if witness is None else f", as {witness} does"
