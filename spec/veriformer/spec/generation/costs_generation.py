"""What a choice of tokens costs: N rows of d logits each, w bytes per element."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.spec.costs import ROWWISE, rowwise


def temperature_costs() -> dict[str, Callable[[], Any]]:
    """Those of softmax and one division more, each worked out when it is asked for: records are made without SymPy."""
    return {name: partial(lambda name: rowwise(6, kept=2)[name], name) for name in ROWWISE}
