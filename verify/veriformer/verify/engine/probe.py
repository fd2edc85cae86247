"""Look at a target in a process of its own: whether it loads, what it is, where it runs, what it supports.

A target that raises, hangs or ends its process while it is imported is thereby a clear message, not a broken run; one
that does so when it is called costs the domain of that operation and no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from veriformer.verify.contract import formats as every
from veriformer.verify.engine.extent import together
from veriformer.verify.engine.look import Asked, Look

_OF_RECOGNITION = ("recognised", "by_name", "not_recognised", "unknown")


@dataclass(frozen=True)
class Described:
    """What is known of a target before its first row. domains: by operation, as in results.json. lacking: by operation
    that it does not provide, why. seen: by operation, what the calls of its probe have run of the target's code."""

    implementation: dict[str, Any]
    environment: dict[str, Any]
    suite: dict[str, Any]
    warnings: list[str]
    domains: dict[str, Any] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def recognised(self) -> dict[str, Any]:
        """What code that was not written for the contract was recognised as; nothing for other targets."""
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
) -> Described:
    """Load the target in other processes, describe it, and find out what it supports of each of these operations.

    seconds: what an operation that does not come back may take. jobs: over how many processes; a target that raises is
    loaded by one of them alone. first: that process, where it has been started.
    Raises TargetError where the target cannot be loaded.
    """
    parts = [operations[job::jobs] for job in range(max(1, min(jobs, len(operations))))]
    with first or Look(spec) as loaded, ThreadPoolExecutor(len(parts)) as waiting:
        loaded.load()
        asked = Asked(device, (), formats, seconds)
        found = [waiting.submit(_described, spec, replace(asked, operations=parts[0]), loaded)]
        found += [waiting.submit(_described, spec, replace(asked, operations=part)) for part in parts[1:]]
        described, *others = [one.result() for one in found]
    by_name = {name: domain for part in (described, *others) for name, domain in part.domains.items()}
    seen = together([part.seen for part in (described, *others)])
    return replace(described, domains={name: by_name[name] for name in operations if name in by_name}, seen=seen)


def _described(spec: str, asked: Asked, first: Look | None = None) -> Described:
    """Return what one process after another has found out, where the target ends them."""
    described, left = None, list(asked.operations)
    while described is None or left:
        with first or Look(spec) as look:
            lines = look.load().describe(replace(asked, operations=left))
        first = None
        described = described or Described(**lines[0])
        begun = [line["begun"] for line in lines[1:] if "begun" in line]
        described.domains.update({line["operation"]: line["domain"] for line in lines[1:] if "operation" in line})
        described.seen.update({line["operation"]: line["seen"] for line in lines[1:] if line.get("seen")})
        left = left[left.index(begun[-1]) + 1 :] if begun else []
    return described
