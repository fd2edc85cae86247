"""One check per operation from a body that is written once over the operation's record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from veriformer.spec.requirements import requirement
from veriformer.verify.catalogue import Check
from veriformer.verify.operation import Operation
from veriformer.verify.trial import Trial


def over(
    operations: Iterable[Operation], family: str, body: Callable[[Operation, Trial], None], **options: Any
) -> tuple[Check, ...]:
    """The checks ``<operation>.<family>``; options are those of Check."""

    def bound(operation: Operation) -> Callable[[Trial], None]:
        return lambda trial: body(operation, trial)

    return tuple(
        Check(requirement=requirement(f"{operation.name}.{family}"), body=bound(operation), **options)
        for operation in operations
    )


def check(slug: str, body: Callable[[Trial], None], **options: Any) -> Check:
    """The check of one requirement by its slug; options are those of Check."""
    return Check(requirement=requirement(slug), body=body, **options)
