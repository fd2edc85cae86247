"""Cases: recipes from which the reference's process makes the arguments of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.strategies.values import KINDS

GIVEN = "given"

_VALUES: Mapping[str, tuple[str, Weight]] = {
    "integers": ("small whole numbers", Weight.WRONG),
    "gaussian": ("other values", Weight.WRONG),
    "ties": ("ties among the values", Weight.FRAGILE),
    "one-signed": ("values of one sign", Weight.WRONG),
    "positive": ("positive values", Weight.WRONG),
    "negative": ("negative values", Weight.WRONG),
    "offset": ("a mean apart from zero", Weight.WRONG),
    "far offset": ("a mean far larger than the spread", Weight.FRAGILE),
    "peaked": ("one value that stands out", Weight.WRONG),
    "spread": ("magnitudes over four decades", Weight.WRONG),
    "duplicates": ("repeated rows or values", Weight.WRONG),
    "sparse": ("zeros among the values", Weight.WRONG),
    "small": ("small values", Weight.WRONG),
    "large": ("large values", Weight.FRAGILE),
    "huge": ("huge values", Weight.FRAGILE),
    "tiny": ("tiny values", Weight.FRAGILE),
    "zeros": ("all values zero", Weight.FRAGILE),
    "constant": ("all values equal", Weight.FRAGILE),
    "exchanged": ("the same values but for two that are exchanged", Weight.WRONG),
}
assert set(KINDS) <= _VALUES.keys()

_LAYOUTS = {
    "transposed": "transposed storage",
    "sliced": "storage with gaps",
    "shifted": "storage that begins elsewhere",
    "expanded": "an expanded first axis",
    "channels last": "channels last in memory",
}


@dataclass(frozen=True)
class Case:
    """A recipe of one call.

    values: a kind, or ``given`` for those of the generator. seed: of values, weights and whatever the code draws.
    sizes: what replaces each size, wherever it stands in shapes or in the arguments of the class; nothing for those
    given. resized: which of them is not merely smaller so that everything is quick. layout: of every tensor. alias:
    places of two tensors that are passed as one. dtype: of floating-point tensors and of the module, None as given.
    mode: ``train``, ``eval``, or ``given``. gradient: whether gradients are taken. drawn: whether weights are drawn
    anew. scalar: which number among the arguments is another one (``init`` counts from 0, then the call's). limits: how
    values are kept where the reference can take them.
    jitter: by how much every value is moved at random, relative.
    """

    values: str = GIVEN
    seed: int = 0
    sizes: tuple[tuple[int, int], ...] = ()
    resized: int | None = None
    layout: str = GIVEN
    alias: tuple[int, int] | None = None
    dtype: str | None = None
    mode: str = GIVEN
    gradient: bool = False
    drawn: bool = False
    scalar: int | None = None
    limits: str = ""
    jitter: float = 0.0

    @property
    def features(self) -> dict[str, Weight]:
        """Differences from an ordinary call as given, in words, with the severity where only such calls go wrong."""
        found: dict[str, Weight] = {}
        if self.values != GIVEN:
            name, weight = _VALUES[self.values]
            found[name] = weight
        elif self.seed:
            found["other values"] = Weight.WRONG
        if self.values not in (GIVEN, "exchanged", "gaussian"):
            found["other values"] = Weight.WRONG
        if self.layout != GIVEN:
            found[_LAYOUTS[self.layout]] = Weight.WRONG
        if self.alias:
            found["one tensor passed as two arguments"] = Weight.WRONG
        if self.dtype:
            found[self.dtype] = Weight.WRONG
        if self.mode != GIVEN:
            found[f"{'training' if self.mode == 'train' else 'evaluation'} mode"] = Weight.WRONG
        if self.gradient:
            found["gradients"] = Weight.WRONG
        if self.drawn:
            found["other weights"] = Weight.WRONG
        if self.scalar is not None:
            found[f"another value of number {self.scalar + 1} among the arguments"] = Weight.WRONG
        if self.sizes and self.resized is None:
            found["other sizes"] = Weight.WRONG
        if self.resized is not None:
            found[f"another size than {self.resized}"] = Weight.WRONG
            if dict(self.sizes)[self.resized] == 1:
                found["an axis of length one"] = Weight.FRAGILE
        return found

    @property
    def ordinary(self) -> bool:
        """True if nothing about it is degenerate or extreme."""
        return all(weight is Weight.WRONG for weight in self.features.values())

    def but(self, **changes: Any) -> Case:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the case as JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Case:
        """Read it back."""
        sizes = tuple((int(old), int(new)) for old, new in entry["sizes"])
        alias = tuple(entry["alias"]) if entry["alias"] else None
        return cls(**{**entry, "sizes": sizes, "alias": alias})
