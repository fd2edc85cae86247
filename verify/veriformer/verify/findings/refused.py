"""Exceptions of code that was not written for the contract: refused by a rule, or raised for some calls by none.

How such code is called is a guess of ours. What it refuses by a rule that can be stated (every call with a feature, or
beyond a size) says that it is not called so, and nothing of what it computes. What it raises for some calls
and answers for others like them follows from no such rule: it is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.evidence import Example, Failing
from veriformer.verify.scripts.script import Recorded

BY_RULE = 0.9
"""A condition under which this share of calls or more is refused states the rule; features are too coarse for all."""

MOSTLY = 0.5
"""Where no condition is found, and more than this share of calls is refused, what is accepted is the exception."""

LEAST = 3
"""Calls that are answered, and that are not, from which a size that tells them apart is no chance."""

Place = tuple[str, int]
"""An axis of an argument, counted from the right; 0 for the number of its entries, or for a number itself."""

Sizes = Mapping[Place, int]


def by_no_rule(cause: Cause, evidence: Sequence[Example]) -> bool:
    """Return whether a cause is an exception for some calls that no rule separates from answered ones."""
    if cause.signature.kind is not Failing.RAISES or cause.condition.requirement is not None:
        return False
    share = BY_RULE if cause.condition.names else MOSTLY
    return cause.share < share and not _told_by_a_size(cause, evidence)


def _told_by_a_size(cause: Cause, evidence: Sequence[Example]) -> bool:
    """Return whether the sizes of some axis are all larger, or all smaller, in the calls that are refused."""
    failed = [sizes(one.recorded[-1]) for one in cause.explained if one.recorded]
    held = [sizes(call) for one in evidence if not one.failed for call in one.recorded]
    return size_rule(failed, held) is not None


def size_rule(failed: Sequence[Sizes], held: Sequence[Sizes], others: Sequence[Sizes] = ()) -> str | None:
    """Return the rule, in words, by which a size separates refused calls from answered ones.

    None where the sizes of no axis are all larger, or all smaller, in the calls that are refused. others: calls that
    are refused perhaps for another reason, which count where the rule is true of them as well.
    """
    for place in sorted(set().union(*failed)) if failed else ():
        refused, answered, also = (
            [known[place] for known in side if place in known] for side in (failed, held, others)
        )
        if len(refused) < len(failed) or len(answered) < LEAST:
            continue
        low, high = min(answered), max(answered)
        if min(refused) > high and len(refused) + sum(size > high for size in also) >= LEAST:
            return f"{_named(place)} above {high}"
        if max(refused) < low and len(refused) + sum(size < low for size in also) >= LEAST:
            return f"{_named(place)} below {low}"
    return None


def _named(place: Place) -> str:
    name, axis = place
    return f"a size of {name} along axis {axis}" if axis else f"a size of {name}"


def sizes(call: Recorded) -> Sizes:
    """Return the sizes of a call's tensors and its whole numbers, by place."""
    return dict(_axes(call))


def _axes(call: Recorded) -> Iterator[tuple[Place, int]]:
    for name, value in call.arguments.items():
        if isinstance(value, torch.Tensor):
            yield (name, 0), value.numel()
            yield from (((name, -axis), size) for axis, size in enumerate(reversed(value.shape), 1))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield (name, 0), value
