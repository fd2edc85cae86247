"""Features of calls: properties that an implementation may lack support for, and conditions of failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from veriformer.spec.requirement import Weight

Arguments = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Named property that a call has or has not, such as ``grouped heads`` or ``a scale of 0``.

    present: returns whether a call with these arguments has it.
    weight: severity if only calls with it go wrong: ``wrong`` for ordinary ones, ``fragile`` for extreme or degenerate
        ones, ``leak`` for hidden values that show in a result.
    optional: whether an implementation may refuse such calls without being wrong: it is then *not provided*.
    """

    name: str
    operation: str
    present: Callable[[Arguments], bool]
    weight: Weight = Weight.WRONG
    optional: bool = True
