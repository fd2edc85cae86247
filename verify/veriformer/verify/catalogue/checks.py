"""Every check of the suite, prerequisites before what rests on them.

Every module of the families and of the operations is searched; its checks, if it has any, are its tuple ``CHECKS``.
"""

from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify import families, operations
from veriformer.verify.judging.check import Check


def modules() -> list[ModuleType]:
    """Return the modules that have checks."""
    folders = (families, operations)
    names = [found.name for folder in folders for found in walk_packages(folder.__path__, f"{folder.__name__}.")]
    return [module for module in map(import_module, names) if hasattr(module, "CHECKS")]


def _by_slug() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for module in modules():
        for check in module.CHECKS:
            if found.setdefault(check.requirement.slug, check) is not check:
                raise ImportError(
                    f"{module.__name__}: {check.requirement.slug} has a check elsewhere; keep one of them"
                )
    return found


_FOUND = _by_slug()

ALL: tuple[Check, ...] = tuple(_FOUND[requirement.slug] for requirement in REQUIREMENTS)
"""Checks in the requirements' order, one per requirement."""
