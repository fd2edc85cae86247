"""Refusals of a target for one operation: the feature labels under which it refuses a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features import GRADIENTS, feature
from veriformer.verify.contract.rules import SizeRule, sizes

TOGETHER = " + "
"""Separator between the names of two features that are refused only together."""

AVOIDED = frozenset(
    ("grouped heads", "one key head for several", "d_v ≠ d_k", "heads narrower or wider than d / H", "d_out ≠ d")
)
"""Shape features that calls of attention can be drawn without."""


@dataclass(frozen=True)
class Refusals:
    """Error messages and size rules under which a target refuses calls of an operation.

    messages: by label (the name of a feature, or two that are refused together), the error message of such calls.
    rules: rules on sizes; calls that break one are refused as well.
    """

    operation: str
    messages: Mapping[str, str]
    rules: tuple[SizeRule, ...] = ()
    _known: dict[str, Feature | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def of(self, arguments: Arguments, dtype: str, *, gradients: bool = False) -> frozenset[str]:
        """Return the labels under which this call is refused. gradients: whether the call asks for them."""
        given = {dtype, *([GRADIENTS] if gradients else [])}
        found = sizes(self.operation, arguments) if self.rules else {}
        broken = {str(rule) for rule in self.rules if not all(rule.admits(size) for size in found.get(rule.axis, ()))}
        return frozenset(broken) | frozenset(
            label
            for label in self.messages
            if all(name in given or self._has(name, arguments) for name in label.split(TOGETHER))
        )

    def fitted(self, axis: str, size: int) -> int:
        """Return a size that this axis may have, ``size`` itself where there is no rule."""
        return next((rule.fitted(size) for rule in self.rules if rule.axis == axis), size)

    def _has(self, name: str, arguments: Arguments) -> bool:
        if name not in self._known:
            self._known[name] = feature(self.operation, name)
        known = self._known[name]
        return known is not None and known.present(arguments)
