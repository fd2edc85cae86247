"""Targets that ship with the suite, by the names that the command line takes.

A target is found by name and built only when it is asked for, so that looking at the list imports nothing heavy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

_SHIPPED: dict[str, tuple[str, str]] = {
    "impl": ("veriformer.verify.targets.impl", "default"),
    "impl:reference": ("veriformer.verify.targets.impl", "reference"),
    "impl:tiled": ("veriformer.verify.targets.impl", "tiled"),
    "impl:sdpa": ("veriformer.verify.targets.impl", "sdpa"),
    "impl:flex": ("veriformer.verify.targets.impl", "flex"),
    "impl:triton": ("veriformer.verify.targets.impl", "triton"),
    "impl:formula": ("veriformer.verify.formulas.target", "TARGET"),
    "torch": ("veriformer.verify.targets.torch_functional", "TARGET"),
    "torch:math": ("veriformer.verify.targets.torch_attention", "MATH"),
    "torch:flash": ("veriformer.verify.targets.torch_attention", "FLASH"),
    "torch:flex": ("veriformer.verify.targets.torch_attention", "FLEX"),
    "transformers": ("veriformer.verify.targets.transformers_operations", "SDPA"),
    "transformers:eager": ("veriformer.verify.targets.transformers_operations", "EAGER"),
    "x-transformers": ("veriformer.verify.targets.x_transformers_operations", "WRITTEN_OUT"),
    "x-transformers:flash": ("veriformer.verify.targets.x_transformers_operations", "FLASH"),
}

_MADE = ("mutant", "variant", "sabotage", "generic")
_FAMILIES = ("transformers", *_MADE)
"""Prefixes of names that take an identifier after a colon."""


def names() -> list[str]:
    """Return every shipped name, and the families of names that take an identifier."""
    return [*_SHIPPED, "transformers:ARCHITECTURE", "mutant:ID", "variant:ID", "sabotage:KIND", "generic:EDIT"]


def is_shipped(spec: str) -> bool:
    """Return whether a word is a shipped name, or of a family of them: nothing is imported to find out."""
    family, _, identifier = spec.partition(":")
    return spec in _SHIPPED or bool(identifier and family in _FAMILIES)


def known_failures(spec: str) -> Path | None:
    """Return the waiver file that ships with a target; None where none does."""
    if spec not in _SHIPPED and not spec.startswith("transformers:"):
        return None
    file = Path(__file__).with_name(f"{spec.replace(':', '_')}_known.toml")
    return file if file.is_file() else None


def find(spec: str) -> Callable[[], object] | None:
    """Return the builder of the shipped target of that name, or None where no such name ships."""
    if spec in _SHIPPED:
        module, attribute = _SHIPPED[spec]
        return lambda: getattr(importlib.import_module(module), attribute)
    family, _, identifier = spec.partition(":")
    if identifier and family == "transformers":
        return partial(importlib.import_module("veriformer.verify.targets.transformers_models").build, identifier)
    if identifier and family in _MADE:
        mutants = importlib.import_module("veriformer.verify.mutants")
        return partial(mutants.build, family, identifier)
    return None
