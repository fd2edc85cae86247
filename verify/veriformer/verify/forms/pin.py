"""Pin of a recognised operation, as plain data by which every process binds it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

_LISTED = ("told", "deviations", "unread")


@dataclass(frozen=True, kw_only=True)
class Pin:
    """Recognised operation of a target.

    name: the candidate, as its module knows it; ``module.name`` within a package, empty for the module itself. form: by
    name. readings: by convention the value by which it is called. deviations: the readings that are not the contract's.
    conventions: claims by which the formula is read. everywhere: whether all that was tried was right.
    told: what a reader must know, in a few words each. unread: names of parameters that no call of the form gives, and
    of which no other value was found to be right.
    """

    operation: str
    form: str
    name: str
    readings: Mapping[str, str] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    conventions: Mapping[str, str] = field(default_factory=dict)
    everywhere: bool = True
    told: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the pin as JSON."""
        return {**asdict(self), **{name: list(getattr(self, name)) for name in _LISTED}}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Pin:
        """Read what ``to_dict`` wrote."""
        listed = {name: tuple(entry.get(name, ())) for name in _LISTED}
        return cls(**{**entry, **listed})
