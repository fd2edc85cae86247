"""The domain of a target's operation: supported features, constants, and precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Domain:
    """Measured domain of one operation.

    provided: names of features that work. refused: name of a feature, or of a pair (``"a + b"``), to the message with
    which such calls are refused. rules: rules on sizes, in words. constants: name to the value that was measured where
    the signature hides it. declared: those among the constants that nothing measured confirmed, so that the default in
    the signature was taken. precision: dtype of the input to the coarser dtype in which results are computed.
    answered: dtypes in which an ordinary call was answered. unread: arguments of the judged code that no reading
    explains, and that were left out. never_run: file, first and last line of judged code that no row ran.
    untaken: those of never_run that stand in a branch on a parameter, an entry of a configuration or an attribute.
    never_varied: parameters of the judged code that were given no more than one value. flags: those among them that
    were True, or False, in every call.
    """

    provided: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    constants: Mapping[str, Any] = field(default_factory=dict)
    precision: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    never_run: tuple[tuple[str, int, int], ...] = ()
    untaken: tuple[tuple[str, int, int], ...] = ()
    never_varied: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def how(self, constant: str) -> str:
        """Return the source of a constant in words: the signature, or a measurement."""
        return "by the signature" if constant in self.declared else "as measured"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``domain`` in results.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Domain:
        """Read an entry of ``domain``."""
        return cls(
            provided=tuple(entry.get("provided", ())),
            refused=dict(entry.get("refused", {})),
            rules=tuple(entry.get("rules", ())),
            constants=dict(entry.get("constants", {})),
            precision=dict(entry.get("precision", {})),
            declared=tuple(entry.get("declared", ())),
            answered=tuple(entry.get("answered", ())),
            unread=tuple(entry.get("unread", ())),
            never_run=tuple((file, first, last) for file, first, last in entry.get("never_run", ())),
            untaken=tuple((file, first, last) for file, first, last in entry.get("untaken", ())),
            never_varied=tuple(entry.get("never_varied", ())),
            flags=tuple(entry.get("flags", ())),
        )
