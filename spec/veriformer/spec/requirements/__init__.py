"""Requirements on an implementation, operation by operation, as records.

``REQUIREMENTS`` lists all of them, prerequisites before what rests on them; ``requirement(slug)`` finds one.
"""

from functools import cache
from importlib import import_module

from veriformer.spec.requirement import Requirement

# Each of these modules holds a tuple REQUIREMENTS; what rests on another comes after it.
_MODULES = (
    "scores",
    "layers",
    "optimizers",
    "any_optimizer",
    "schedules",
    "gradients",
    "attention",
    "blocks",
    "positions",
    "generation",
    "tokenizers",
    "models",
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(
    found for name in _MODULES for found in import_module(f"{__name__}.{name}").REQUIREMENTS
)
"""Every requirement, in the order of the contract."""


@cache
def _by_slug() -> dict[str, Requirement]:
    return {requirement.slug: requirement for requirement in REQUIREMENTS}


def requirement(slug: str) -> Requirement:
    """Return the requirement of that slug. Raises KeyError, which names an unknown slug."""
    return _by_slug()[slug]


__all__ = ["REQUIREMENTS", "Requirement", "requirement"]
