"""What was counted with: versions, and nothing that names the machine. Counts do not depend on the processor."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch


def suite() -> dict[str, Any]:
    """The suite's version and, in a checkout, its commit."""
    try:
        version = importlib.metadata.version("veriformer")
    except importlib.metadata.PackageNotFoundError:
        version = "0+unknown"
    return {"version": version, "commit": _commit()}


def environment() -> dict[str, Any]:
    """Interpreter, PyTorch and platform."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(terse=True),
    }


def _commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
