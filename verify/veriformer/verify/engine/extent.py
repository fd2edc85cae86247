"""Coverage that a run reached of a target's operations, put into their domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from veriformer.verify.engine.plan import Plan
from veriformer.verify.presentation.recognised import judged_whole
from veriformer.verify.results import Result, Results
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.unseen import Lines
from veriformer.verify.results.verdict import dtypes_that_hold
from veriformer.verify.targets.statements import derivative_beside, statements
from veriformer.verify.targets.watch import MANY, Watch
from veriformer.verify.targets.watch import Seen as watch_seen

Seen = Mapping[str, Any]
"""Coverage of one operation, as JSON holds it: ``statements`` of the functions that were entered (file, first and last
line, whether in a branch on a parameter), the lines of those that ``ran`` (file, line), and at most two
``values`` of each parameter, in words, by name."""

_OF_NO_ACCOUNT = frozenset(
    (
        *("device", "dtype", "name", "verbose", "inplace", "layer_idx", "layer_id", "layer_index", "block_idx", "idx"),
        *("param_dtype", "torch_dtype", "requires_grad", "generator", "seed"),
    )
)
"""Parameters that change nothing of what is computed."""

_OF_OTHER_PARTS = frozenset(("layers", "vocabulary", "length", "batch"))
"""Sizes that no operation here depends on, where it is not called with a tensor of that size."""


def seen_of(watch: Watch, operation: str) -> Seen:
    """Return the recorded coverage of an operation."""
    found = watch.seen.get(operation, watch_seen())
    roots = {(code.co_filename, code.co_firstlineno) for code in watch.roots.get(operation, ())}
    chosen = watch.chosen.get(operation, frozenset())
    listed = {
        (file, one.first, one.last, one.branch)
        for file, entered in found.entered.items()
        for first in entered
        for one in statements(file, first, chosen, inner=(file, first) not in roots)
    }
    beside = {(file, derivative_beside(file, first)) for file, entered in found.entered.items() for first in entered}
    listed |= {
        (file, one.first, one.last, True)
        for file, first in beside
        if first is not None and first not in found.entered[file]
        for one in statements(file, first)
    }
    ran = {
        (watch.shown(file), line)
        for file, first, last, _ in listed
        if not found.lines.get(file, set()).isdisjoint(range(first, last + 1))
        for line in range(first, last + 1)
    }
    values = {
        name: sorted(words)
        for (_, name), words in sorted(found.values.items())
        if "." not in name or name.partition(".")[2] in found.names
    }
    shown = sorted((watch.shown(file), *rest) for file, *rest in listed)
    return {"statements": [list(one) for one in shown], "ran": [list(one) for one in sorted(ran)], "values": values}


def together(parts: Iterable[Mapping[str, Seen]]) -> dict[str, Seen]:
    """Merge the coverage that several processes recorded, by operation."""
    found: dict[str, Seen] = {}
    for part in parts:
        for operation, seen in part.items():
            found[operation] = _both(found[operation], seen) if operation in found else seen
    return found


def lines_run(parts: Iterable[Mapping[str, Seen]]) -> frozenset[tuple[str, int]]:
    """Return the lines, with their files, that calls of any operation ran."""
    return frozenset((file, line) for part in parts for seen in part.values() for file, line in seen["ran"])


def without(lines: Iterable[Lines], ran: frozenset[tuple[str, int]]) -> tuple[Lines, ...]:
    """Return lines, as runs that follow each other, but for those that ran."""
    left = {(file, n) for file, first, last in lines for n in range(first, last + 1)}
    return spans(left - ran)


def _both(one: Seen, other: Seen) -> Seen:
    listed = {name: sorted({tuple(x) for x in (*one[name], *other[name])}) for name in ("statements", "ran")}
    return {**{name: [list(x) for x in found] for name, found in listed.items()}, "values": _values([one, other])}


def _values(parts: Sequence[Seen]) -> dict[str, list[str]]:
    names = dict.fromkeys(name for part in parts for name in part["values"])
    return {name: sorted({word for part in parts for word in part["values"].get(name, ())})[:2] for name in names}


def domains_of(plan: Plan, rows: Sequence[Result], seen: Mapping[str, Seen]) -> dict[str, Domain]:
    """Return the probed domains by operation, completed by rows and recognition."""
    held = dtypes_that_hold(rows)
    pins = {pin["operation"]: pin for pin in judged_whole(plan.recognised)}
    seen = _shared(seen, {operation: pin["name"] for operation, pin in pins.items()})
    return {
        name: replace(
            domain,
            answered=tuple(dict.fromkeys([*domain.answered, *held.get(name, ())])),
            unread=_unread(pins.get(name, {}), seen.get(name, {})),
            **(_not_run(seen[name]) if name in seen else {}),
        )
        for name, domain in ((name, Domain.from_dict(entry)) for name, entry in plan.domains.items())
    }


def _shared(seen: Mapping[str, Seen], names: Mapping[str, str]) -> dict[str, Seen]:
    """Return what was seen, with the lines that calls of another operation ran, and the values that they gave to code
    that is judged as both. names: of the code, by operation."""
    ran = [list(one) for one in sorted({tuple(one) for found in seen.values() for one in found["ran"]})]
    alike = {operation: [seen[x] for x in seen if x in names and names[x] == name] for operation, name in names.items()}
    values = {operation: _values(alike.get(operation) or [found]) for operation, found in seen.items()}
    return {operation: {**found, "ran": ran, "values": values[operation]} for operation, found in seen.items()}


def _unread(pin: Mapping[str, Any], seen: Seen) -> tuple[str, ...]:
    """Return the parameters that no reading explains, except those that took several values in the calls that ran."""
    varied = {name.rpartition(".")[2] for name, words in seen.get("values", {}).items() if len(words) > 1}
    return tuple(name for name in pin.get("unread", ()) if name not in varied)


def _not_run(seen: Seen) -> dict[str, Any]:
    """Return the domain's fields on code never run and arguments never varied; consecutive statements are one range."""
    ran = {tuple(one) for one in seen["ran"]}
    groups: list[list[Any]] = []
    follows = False
    for file, first, last, branch in seen["statements"]:
        if (file, first) in ran:
            follows = False
            continue
        if follows and groups[-1][0] == file:
            groups[-1][2:] = [max(last, groups[-1][2]), branch or groups[-1][3]]
        else:
            groups.append([file, first, last, branch])
        follows = True
    fixed = {name: words for name, words in seen["values"].items() if len(words) == 1 and words != [MANY]}
    counted = [name for name in fixed if _counts(name.rpartition(".")[2])]
    return {
        "never_run": tuple((file, first, last) for file, first, last, _ in groups),
        "untaken": tuple((file, first, last) for file, first, last, branch in groups if branch),
        "never_varied": tuple(counted),
        "flags": tuple(name for name in counted if fixed[name][0] in ("False", "True")),
    }


def _counts(name: str) -> bool:
    """Return whether a parameter may change the result: no device or name does, and no size of other parts."""
    from veriformer.verify.forms.size_names import size_of  # which imports PyTorch, and a journal is read without it

    return name not in _OF_NO_ACCOUNT and size_of(name) not in _OF_OTHER_PARTS


def asked(domain: Domain) -> Domain:
    """Return the domain in which rows are run: without facts on coverage."""
    return replace(domain, unread=(), never_run=(), untaken=(), never_varied=(), flags=())


def probed(domains: Mapping[str, Domain]) -> dict[str, Domain]:
    """Return the domains without the facts that rows of one part of a run add, which other parts need not share."""
    nothing: dict[str, tuple[()]] = {"answered": (), "never_run": (), "untaken": (), "never_varied": (), "flags": ()}
    return {name: replace(domain, **nothing) for name, domain in domains.items()}  # type: ignore[arg-type]


def joined(parts: Sequence[Results]) -> dict[str, Domain]:
    """Join the domains of a run's parts: code is unseen if no part that ran its rows has seen it."""
    found = {}
    for name, domain in parts[0].domain.items():
        mine = [part.domain[name] for part in parts if any(row.operation == name for row in part.results)]
        found[name] = _joined(domain, mine or [domain])
    return found


def _joined(domain: Domain, parts: Sequence[Domain]) -> Domain:
    return replace(
        domain,
        answered=tuple(dict.fromkeys(dtype for part in parts for dtype in part.answered)),
        never_run=common([part.never_run for part in parts]),
        untaken=common([part.untaken for part in parts]),
        never_varied=tuple(x for x in parts[0].never_varied if all(x in part.never_varied for part in parts)),
        flags=tuple(x for x in parts[0].flags if all(x in part.flags for part in parts)),
    )


def common(parts: Sequence[Iterable[tuple[str, int, int]]]) -> tuple[tuple[str, int, int], ...]:
    """Return the lines that stand in all of the parts."""
    sets = [{(file, n) for file, first, last in part for n in range(first, last + 1)} for part in parts]
    return spans(set.intersection(*sets))


def spans(lines: Iterable[tuple[str, int]]) -> tuple[tuple[str, int, int], ...]:
    """Return lines as the fewest runs of lines that follow each other."""
    found: list[tuple[str, int, int]] = []
    for file, number in sorted(lines):
        if found and found[-1][0] == file and found[-1][2] == number - 1:
            found[-1] = (file, found[-1][1], number)
        else:
            found.append((file, number, number))
    return tuple(found)
