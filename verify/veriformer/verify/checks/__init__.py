"""Every check of the suite, prerequisites before what rests on them."""

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.check import Check
from veriformer.verify.checks import (
    accuracy,
    batch,
    clipping,
    equation,
    losses,
    masks,
    norms,
    perplexities,
    purity,
    refusal,
    scores,
    sensitivity,
)

_MODULES = (
    equation,
    losses,
    perplexities,
    purity,
    refusal,
    batch,
    sensitivity,
    accuracy,
    scores,
    losses,
    perplexities,
    norms,
    clipping,
    masks,
)
_BY_SLUG: dict[str, Check] = {check.requirement.slug: check for module in _MODULES for check in module.CHECKS}

ALL: tuple[Check, ...] = tuple(_BY_SLUG[requirement.slug] for requirement in REQUIREMENTS)
"""One check per requirement, in the requirements' order."""
