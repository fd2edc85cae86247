"""Probe of a target in other processes: whether it loads, its description, and its domains.

A target that raises, hangs or ends its process while it is imported is thereby a clear message, not a broken run; one
that does so when it is called costs the domain of that operation and no other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from veriformer.verify.contract import formats as every
from veriformer.verify.engine.look import Asked, Look

_WORTH = 6
"""Operations for which another process is started: to start one takes 2 s, to probe one of them half a second, and
what the one does not probe the other does meanwhile."""

_OF_RECOGNITION = ("recognised", "by_name", "not_recognised", "unknown")


@dataclass(frozen=True)
class TargetInfo:
    """Description of a target before its first row. domains: by operation, as in results.json. lacking: by operation
    that it does not provide, why. seen: by operation, the target's code that the calls of its probe have run."""

    implementation: dict[str, Any]
    environment: dict[str, Any]
    suite: dict[str, Any]
    warnings: list[str]
    domains: dict[str, Any] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def recognised(self) -> dict[str, Any]:
        """Recognised forms of code that was not written for the contract; empty for other targets."""
        return {key: self.implementation[key] for key in _OF_RECOGNITION if key in self.implementation}


def probe(
    spec: str,
    device: str,
    operations: Sequence[str] = (),
    formats: Sequence[str] = every.NAMES,
    seconds: float | None = None,
    *,
    jobs: int = 1,
    first: Look | None = None,
) -> TargetInfo:
    """Load the target in other processes, describe it, and probe each of these operations.

    seconds: what an operation that does not come back may take. jobs: over how many processes at most; one loads and
    describes the target before the others are started. first: that process, where it has been started.
    Raises TargetError where the target cannot be loaded.
    """
    asked = Asked(device, formats, seconds)
    with contextlib.ExitStack() as stack:
        loaded = stack.enter_context(first or Look(spec)).load()
        described = TargetInfo(**loaded.describe(asked))
        provided = [name for name in operations if name not in described.lacking]
        asked = replace(asked, recognised=described.recognised or None)
        number = max(1, min(jobs, len(provided) // _WORTH))
        waiting = stack.enter_context(ThreadPoolExecutor(number))
        found = [
            waiting.submit(_found_out, spec, asked, provided[job::number], None if job else loaded)
            for job in range(number)
        ]
        for one in found:
            domains, seen = one.result()
            described.domains.update(domains)
            described.seen.update(seen)
    return replace(
        described, domains={name: described.domains[name] for name in operations if name in described.domains}
    )


def _found_out(
    spec: str, asked: Asked, operations: Sequence[str], described: Look | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return domains, and coverage of the target's code, by operation.

    described: a process that has described the target. Where the target ends a process, another one goes on after the
    operation at which it did.
    """
    with described or Look(spec) as look:
        if described is None:
            look.load().describe(asked)
        lines = look.find_out(operations)
    domains = {line["operation"]: line["domain"] for line in lines if "operation" in line}
    seen = {line["operation"]: line["seen"] for line in lines if line.get("seen")}
    begun = [line["begun"] for line in lines if "begun" in line]
    left = operations[operations.index(begun[-1]) + 1 :] if begun else ()
    if left:
        more, ran = _found_out(spec, asked, left)
        domains, seen = {**domains, **more}, {**seen, **ran}
    return domains, seen
