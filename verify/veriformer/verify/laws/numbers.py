"""NumPy scalars in place of Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def number(value: Any) -> Any:
    """Convert a Python number to a NumPy scalar; return anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return np.int64(value) if isinstance(value, int) else np.float64(value)
