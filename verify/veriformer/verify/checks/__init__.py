"""Every check of the suite, prerequisites before what rests on them."""

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.check import Check
from veriformer.verify.checks import families

_BY_SLUG: dict[str, Check] = {check.requirement.slug: check for check in (*families.CHECKS,)}

ALL: tuple[Check, ...] = tuple(_BY_SLUG[requirement.slug] for requirement in REQUIREMENTS)
"""One check per requirement, in the requirements' order."""
