"""The domain of one operation of a target: what it supports, which constants it uses, how precisely it computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Domain:
    """What a probe found out about one operation.

    provided: names of features that work. refused: name of a feature, or of a pair (``"a + b"``), to the message with
    which such calls are refused. rules: rules on sizes, in words. constants: name to the value that was measured where
    the signature hides it. declared: those among the constants that nothing measured confirmed, so that the default in
    the signature was taken. precision: dtype of the input to the coarser dtype in which results are computed.
    """

    provided: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    precision: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[str, ...] = ()

    def how(self, constant: str) -> str:
        """Where a constant is known from, in words."""
        return "by the signature" if constant in self.declared else "as measured"

    def to_dict(self) -> dict[str, Any]:
        """The entry of ``domain`` in results.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Domain:
        """The record of one entry of ``domain``."""
        return cls(
            provided=tuple(entry.get("provided", ())),
            refused=dict(entry.get("refused", {})),
            rules=tuple(entry.get("rules", ())),
            constants=dict(entry.get("constants", {})),
            precision=dict(entry.get("precision", {})),
            declared=tuple(entry.get("declared", ())),
        )
