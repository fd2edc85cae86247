"""Environment of a count: versions, and nothing that names the machine. Counts do not depend on the processor."""

from __future__ import annotations

import platform
from typing import Any

import torch


def environment() -> dict[str, Any]:
    """Interpreter, PyTorch and platform."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(terse=True),
    }
