"""Parts of the judged code that no call reached, and which of them leave a run without a verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from veriformer.verify.results.domain import Domain

Lines = tuple[str, int, int]
"""File, first and last line."""

_STATE = frozenset(
    (
        *("mask", "masks", "masked", "masking", "pad", "pads", "padding", "padded", "valid", "causal"),
        *("past", "cache", "caches", "cached", "kv", "offset", "offsets", "start", "state", "states", "prev"),
        *("previous", "memory", "mem", "position", "positions", "pos", "lens", "lengths", "seqlens"),
    )
)
"""Words of arguments that say who sees whom, what came before, or where a call begins."""

_NUMBERS = frozenset(
    (
        *("num", "n", "heads", "head", "dim", "dims", "size", "groups", "max", "min", "id", "idx", "index", "value"),
        *("fill", "dropout", "dtype", "device", "implementation", "impl", "layer", "type", "embedding", "embeddings"),
    )
)
"""Words by which such an argument is a number or a name of something and not the thing itself."""


_UNDONE = "NotImplementedError"

_REFUSALS = (_UNDONE, "NotOffered", "ValueError", "TypeError")
"""Names of errors by which code says that it does not take a call."""

_MOST = 8
"""Maximum number of features that are refused with one message; of more of them, none is the reason."""

_BY_LAWS = ("optimizer", "lr_scheduler")
_LAWS = "no formula of `{name}` is known, it was judged as any {operation}"


def structural(name: str) -> bool:
    """Return whether an argument is a mask, a cache or a state by its name."""
    own = set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2]).lower().split("_"))
    return bool(own & _STATE) and not own & _NUMBERS


def unjudged_parts(implementation: Mapping[str, Any], operations: Collection[str]) -> list[str]:
    """Return what has the name of an operation that was asked for, and was not judged as it; and what was judged only
    by what holds of every optimizer or scheduler, for no formula of it is known."""
    refused, found = implementation.get("not_recognised", ()), implementation.get("recognised", ())
    named = [one for one in refused if one.get("named") and one["operation"] in operations]
    by_formula = {one["name"] for one in found if one["operation"] not in _BY_LAWS}
    by_laws = [one for one in found if one["operation"] in _BY_LAWS and one["operation"] in operations]
    return [
        *dict.fromkeys(f"`{one['name']}` was not judged as {one['operation']}" for one in named),
        *dict.fromkeys(_LAWS.format(**one) for one in by_laws if one["name"] not in by_formula),
    ]


def omitted_arguments(implementation: Mapping[str, Any], operations: Collection[str]) -> list[str]:
    """Return the masks, caches and states that no call of these operations gives, as their recognition found out."""
    found = [one for one in implementation.get("recognised", ()) if one["operation"] in operations]
    names = dict.fromkeys(name for one in found for name in one.get("unread", ()) if structural(name))
    return [f"`{name}` was left out" for name in names]


def unseen(domains: Mapping[str, Domain]) -> list[str]:
    """Return why code was not judged whole: its masks, caches and states, its flags and branches that no call reached,
    and gradients that it has and that no call was answered with."""
    found = [
        said
        for domain in domains.values()
        for said in (
            *_parameters(domain),
            *_lines(domain, domain.untaken),
            *_gradients(domain),
            *_unexplained_errors(domain),
        )
    ]
    return list(dict.fromkeys(found))


def _gradients(domain: Domain) -> list[str]:
    """Return that no gradient was judged, where asking for one raises: code without any has no graph, or says so."""
    said = domain.refused.get("gradients", "")
    name = said.partition(": ")[0]
    return [f"its gradients were never judged ({name})"] if name.endswith("Error") and name != _UNDONE else []


def _unexplained_errors(domain: Domain) -> list[str]:
    """Return errors that calls raise and that no few features explain: these calls were not judged."""
    told: dict[str, str] = {}
    counts = Counter(re.sub(r"\d+", "", message) for message in domain.refused.values())
    for message in domain.refused.values():
        if not message.startswith(_REFUSALS):
            told.setdefault(re.sub(r"\d+", "", message), message)
    many = [message.partition(": ") for key, message in told.items() if counts[key] > _MOST]
    raised = [f"{name} ({said})" if said else name for name, _, said in many]
    return [f"why some calls raise {error} was not found" for error in raised]


def _parameters(domain: Domain) -> list[str]:
    unread = [f"`{name}` was left out" for name in domain.unread if structural(name)]
    counted = [name for name in domain.never_varied if structural(name) or name in domain.flags]
    fixed = [name for name in counted if name not in domain.unread]
    return [*unread, *(f"`{name}` was never varied" for name in fixed)]


def _lines(domain: Domain, untaken: Sequence[Lines]) -> list[str]:
    several = len({file for file, _, _ in domain.never_run}) > 1
    return [f"{lines_in_words(lines, named=several)} never ran" for lines in untaken]


def describe_all(domains: Mapping[str, Domain]) -> list[str]:
    """Return all that no call reached or varied, what leaves a run without a verdict first."""
    found = unseen(domains)
    for domain in domains.values():
        found += [f"`{name}` was left out" for name in domain.unread]
        rest = [lines for lines in domain.never_run if lines not in domain.untaken]
        found += _lines(domain, rest)
        found += [f"`{name}` was never varied" for name in domain.never_varied if name not in domain.unread]
    return list(dict.fromkeys(found))


def lines_in_words(lines: Lines, *, named: bool = False) -> str:
    """Return ``lines 14 to 18``, or ``line 3``. named: with the name of the file before it."""
    file, first, last = lines
    said = f"line {first}" if first == last else f"lines {first} to {last}"
    return f"{PurePath(file).name} {said}" if named else said
