"""NumPy's numbers for Python's."""

from __future__ import annotations

from typing import Any

import numpy as np


def number(value: Any) -> Any:
    """NumPy's number for Python's; anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return np.int64(value) if isinstance(value, int) else np.float64(value)
