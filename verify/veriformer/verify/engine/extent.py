"""What a run has seen of a target's operations, put into their domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from veriformer.verify.domain.record import Domain
from veriformer.verify.engine.plan import Plan
from veriformer.verify.presentation.recognised import first_of_each
from veriformer.verify.results import Result
from veriformer.verify.results.verdict import held_in


def domains_of(plan: Plan, rows: Sequence[Result]) -> dict[str, Domain]:
    """Return by operation what a probe found out, with what its rows and its recognition add."""
    held = held_in(rows)
    pins = {pin["operation"]: pin for pin in first_of_each(list(plan.recognised.get("recognised", ())))}
    return {
        name: replace(
            domain,
            answered=tuple(dict.fromkeys([*domain.answered, *held.get(name, ())])),
            unread=tuple(pins.get(name, {}).get("unread", ())),
        )
        for name, domain in ((name, Domain.from_dict(entry)) for name, entry in plan.domains.items())
    }


def probed(domains: Mapping[str, Domain]) -> dict[str, Domain]:
    """Return the domains without what the rows of one part of a run add, which other parts need not share."""
    nothing: dict[str, tuple[()]] = {"answered": (), "never_run": (), "untaken": (), "never_varied": ()}
    return {name: replace(domain, **nothing) for name, domain in domains.items()}  # type: ignore[arg-type]


def joined(parts: Sequence[Mapping[str, Domain]]) -> dict[str, Domain]:
    """Return the domains of a whole run from those of its parts: what no part has seen, the whole has not seen."""
    first = parts[0]
    return {name: _joined(domain, [part[name] for part in parts if name in part]) for name, domain in first.items()}


def _joined(domain: Domain, parts: Sequence[Domain]) -> Domain:
    return replace(
        domain,
        answered=tuple(dict.fromkeys(dtype for part in parts for dtype in part.answered)),
        never_run=common([part.never_run for part in parts]),
        untaken=common([part.untaken for part in parts]),
        never_varied=tuple(x for x in domain.never_varied if all(x in part.never_varied for part in parts)),
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
