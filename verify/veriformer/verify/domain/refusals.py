"""What a target refuses of one operation, ready to be asked of a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from veriformer.verify.domain.feature import Arguments, Feature
from veriformer.verify.domain.features import GRADIENTS, feature

TOGETHER = " + "
"""Between the names of two features that are refused only together."""


@dataclass(frozen=True)
class Refusals:
    """messages: by label (the name of a feature, or two that are refused together), what such calls are answered."""

    operation: str
    messages: Mapping[str, str]
    _known: dict[str, Feature | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, arguments: Arguments, dtype: str, *, gradients: bool = False) -> frozenset[str]:
        """The labels under which this call is refused. gradients: whether it asks for them."""
        given = {dtype, *([GRADIENTS] if gradients else [])}
        return frozenset(
            label
            for label in self.messages
            if all(name in given or self._has(name, arguments) for name in label.split(TOGETHER))
        )

    def _has(self, name: str, arguments: Arguments) -> bool:
        if name not in self._known:
            self._known[name] = feature(self.operation, name)
        known = self._known[name]
        return known is not None and known.present(arguments)
