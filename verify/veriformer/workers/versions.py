"""Versions of everything on which a row's result depends: the parts of a run must share them."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

_LIBRARIES = ("torch", "numpy", "scipy", "mpmath", "sympy", "hypothesis")
_PACKAGES = ("veriformer.workers", "veriformer.spec", "veriformer.impl", "veriformer.verify")


def versions(names: Sequence[str] = (), folder: Path | None = None) -> dict[str, str]:
    """Return versions by name: interpreter, libraries that draw and compute, and a digest of the suite's own source.

    names: of these and no others, distributions among them; folder: where some may be installed besides.
    """
    return {name: _version(name, folder) for name in names or (*_OWN, *_LIBRARIES)}


def _version(name: str, folder: Path | None) -> str:
    if name in _OWN:
        return _OWN[name]()
    for found in importlib.metadata.distributions(name=name, path=[str(folder)]) if folder else ():
        return found.version
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def differences(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return a line for each version that differs, naming both."""
    names = dict.fromkeys((*mine, *theirs))
    return [
        f"{name} {theirs.get(name, 'absent')}, not {mine.get(name, 'absent')}"
        for name in names
        if mine.get(name, "absent") != theirs.get(name, "absent")
    ]


def digest(files: Iterable[tuple[str, bytes]]) -> str:
    """Return 12 hexadecimal digits of SHA-256 over file names and contents, independent of their order."""
    total = hashlib.sha256()
    for name, content in sorted(files):
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:12]


@functools.cache
def _source() -> str:
    files = []
    for package in _PACKAGES:
        found = importlib.util.find_spec(package)
        for place in (found.submodule_search_locations or ()) if found else ():
            root = Path(place)
            files += [(f"{package}/{file.relative_to(root).as_posix()}", file.read_bytes()) for file in _texts(root)]
    return digest(files)


def _texts(root: Path) -> Iterable[Path]:
    return (file for suffix in ("py", "json") for file in root.rglob(f"*.{suffix}"))


_OWN: dict[str, Callable[[], str]] = {"python": platform.python_version, "suite": _source}
