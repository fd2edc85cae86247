"""SymPy, imported when it is first used: evaluating a formula needs none of it, and its import takes a while."""

from __future__ import annotations

import importlib
from typing import Any


class _Lazy:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


sp: Any = _Lazy("sympy")
