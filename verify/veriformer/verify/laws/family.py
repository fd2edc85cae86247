"""Construction of checks: of one requirement, or of one requirement per operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from veriformer.spec.requirements import REQUIREMENTS, requirement
from veriformer.verify.contract import dtypes
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.targets.target import Target

_SLUGS = frozenset(listed.slug for listed in REQUIREMENTS)


def over(
    operations: Iterable[OpInfo],
    family: str,
    body: Callable[[OpInfo, Trial], None],
    *,
    dtypes: tuple[str, ...] = dtypes.NAMES,
    **options: Any,
) -> tuple[Check, ...]:
    """Return the checks ``<operation>.<family>`` of those operations that list it as a requirement, in their dtypes.

    Options are those of Check.
    """

    def bound(operation: OpInfo) -> Callable[[Trial], None]:
        return lambda trial: body(operation, trial)

    return tuple(
        Check(
            requirement=requirement(f"{operation.name}.{family}"),
            property_test=bound(operation),
            dtypes=tuple(name for name in dtypes if name in _formats(operation, family)),
            **options,
        )
        for operation in operations
        if is_required(operation, family)
    )


def is_required(operation: OpInfo, family: str) -> bool:
    """Return whether ``<operation>.<family>`` is a requirement."""
    return f"{operation.name}.{family}" in _SLUGS


_FORMS = ("purity", "layout", "batch", "sensitivity", "numpy_numbers", "refusal", "refusal_names_argument")


def _formats(operation: OpInfo, family: str) -> tuple[str, ...]:
    return tuple(name for name in operation.dtypes if family not in _FORMS or name in operation.structural_dtypes)


def settles_ties(target: Target, operation: str, dtype: str) -> str | None:
    """Return why a law of ties does not apply: the target claims to leave the choice of equal scores open."""
    return "which of equal scores is chosen is left open, as claimed" if target.claims.deviates("choice.ties") else None


def check(slug: str, body: Callable[[Trial], None], **options: Any) -> Check:
    """Return the check of a requirement by its slug; options are those of Check."""
    return Check(requirement=requirement(slug), property_test=body, **options)


def on(operation: OpInfo, body: Any) -> Any:
    """Bind the body of a law to an operation."""
    return lambda trial: body(operation, trial)
