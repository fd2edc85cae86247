"""Version and commit of this suite."""

from __future__ import annotations

import functools
import importlib.metadata
import subprocess
from pathlib import Path


def version() -> str:
    """Return the version that is installed; ``0+unknown`` for source that is not."""
    try:
        return importlib.metadata.version("veriformer")
    except importlib.metadata.PackageNotFoundError:
        return "0+unknown"


@functools.cache
def commit() -> str | None:
    """Return the commit of a checkout; None where this file is in none, or in one of another project."""
    own = _git("ls-files", "--error-unmatch", Path(__file__).name)
    return _git("rev-parse", "--short=12", "HEAD") if own else None


def record() -> dict[str, str | None]:
    """Return both as results files hold them."""
    return {"version": version(), "commit": commit()}


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
