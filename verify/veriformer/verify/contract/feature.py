"""A feature of calls: something that an implementation may support or not, and a condition under which it may fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from veriformer.spec.requirement import Weight

Arguments = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A property that a call has or has not, in words that a person knows: ``grouped heads``, ``a scale of 0``.

    present: whether a call with these arguments has it.
    weight: what is at stake where only calls with it go wrong: ``wrong`` for ordinary ones, ``fragile`` for extreme or
        degenerate ones, ``leak`` for what must not be seen.
    optional: whether an implementation may refuse such calls without being wrong: it is then *not provided*.
    """

    name: str
    operation: str
    present: Callable[[Arguments], bool]
    weight: Weight = Weight.WRONG
    optional: bool = True
