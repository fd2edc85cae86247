"""Verdicts on disk, keyed by content: the text of every module that a proof rests on, and the version of SymPy."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from veriformer.spec.equation import Step

_PACKAGE = "veriformer.spec"
_PROVER = tuple(
    f"{_PACKAGE}.{name}"
    for name in (
        "proofs.prover",
        "proofs.provenance",
        "proofs.algebra",
        "proofs.sums",
        "proofs.tower_arithmetic",
        "equation",
    )
)


def directory() -> Path:
    """Return the folder of verdicts: `proofs` in $VERIFORMER_CACHE, or in .veriformer in the working directory."""
    return Path(os.environ.get("VERIFORMER_CACHE", ".veriformer")) / "proofs"


def load(step: Step) -> dict[str, Any] | None:
    """Return the stored verdict of this step as it stands; None where there is none."""
    with suppress(OSError, ValueError):
        known = json.loads((directory() / f"{key(step)}.json").read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else None
    return None


def store(step: Step, verdict: dict[str, Any]) -> None:
    """Keep a verdict. Where nothing can be written, the next run proves the step again."""
    file = directory() / f"{key(step)}.json"
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(verdict), encoding="utf-8")
        draft.replace(file)


def key(step: Step) -> str:
    """Return a digest of the step's name and scope, of the sources it rests on, and of the version of SymPy."""
    file = inspect.getsourcefile(step.identity)
    if file is None:
        raise ValueError(f"identity: expected a function of a module, got {step.identity!r}")
    digest = hashlib.sha256(f"{version('sympy')} {step.slug} {step.identity.__qualname__} {step.scope}".encode())
    for source in sorted(_closure(Path(file))):
        digest.update(_text(source))
    return digest.hexdigest()


def _closure(file: Path) -> frozenset[Path]:
    """Return the file, the prover, and every module of this package that they import, directly or not."""
    found: set[Path] = set()
    todo = [file, *map(_locate, _PROVER)]
    while todo:
        source = todo.pop()
        if source not in found:
            found.add(source)
            todo += map(_locate, _imports(source))
    return frozenset(found)


@cache
def _text(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _locate(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"no source for {module}")
    return Path(spec.origin)


@cache
def _imports(file: Path) -> tuple[str, ...]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(_text(file))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_PACKAGE):
            module = node.module or ""
            names |= {module} if module != _PACKAGE else {f"{_PACKAGE}.{alias.name}" for alias in node.names}
    return tuple(sorted(names))
