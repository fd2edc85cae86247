"""Remarks after the findings, one line each: advice, gaps, and measured constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.presentation.ranked import advice
from veriformer.verify.presentation.recognised import outside
from veriformer.verify.results import Results
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.foreign import named, number, one_line
from veriformer.verify.results.unseen import describe_all
from veriformer.verify.results.words import claim, title

Remark = tuple[str, str]
"""Label and text."""

_LINE = 240
_FEW = 8
"""Operations up to which those that are missing are named."""


def advised(run: Results) -> Iterator[Remark]:
    """Yield advice, equal advice on several operations merged; then rows of advice that no finding explains."""
    groups: dict[tuple[str, str, str | None], list[Finding]] = {}
    for finding in advice(run):
        if finding.weight is Weight.WEAKNESS:  # told under its weight
            continue
        groups.setdefault((finding.weight.value, finding.what, finding.when), []).append(finding)
    for members in groups.values():
        yield members[0].weight.value, one_line(_advice(members), _LINE)
    known = {key for finding in run.findings for key in finding.rows}
    rows = [row for row in run.results if row.status == "advice" and row.key not in known]
    for weight in dict.fromkeys(row.weight or "advice" for row in rows):
        mine = [row for row in rows if (row.weight or "advice") == weight]
        names = list(dict.fromkeys(row.requirement for row in mine))
        yield weight, one_line(f"not met in {number(len(mine), 'row')}: {named(names, 3)}", _LINE)


def _advice(members: list[Finding]) -> str:
    first = members[0]
    said = title(first)
    if len(members) > 1:
        operations = list(dict.fromkeys(finding.operation for finding in members))
        said = f"{named(operations, 3)}: {said.removeprefix(f'{first.operation}: ')}"
    return said + (f"; if intended, {claim(first.suggestion)}" if first.suggestion else "")


def lacking(run: Results) -> Iterator[Remark]:
    """Give what was not recognised though its name says an operation, what the target does not support, and which of
    the contract's operations it has not at all."""
    unread = list(dict.fromkeys(one["name"] for one in run.implementation.get("not_recognised", ())))
    if unread:
        yield "not judged", one_line(f"{named(unread, _FEW)}: why is said above, and by veriformer inspect", _LINE)
    beside = outside(run.implementation)
    if beside:
        yield "not judged", one_line(f"{named(beside, _FEW)}: outside the contract, or one of several", _LINE)
    left_out = [row for row in run.results if row.status == "not-provided"]
    groups: dict[tuple[str, str], list[str]] = {}
    for operation, domain in run.domain.items():
        for feature, message in domain.refused.items():
            groups.setdefault((feature, message), []).append(operation)
    for (feature, message), operations in groups.items():
        count = sum(row.operation in operations and _of(feature, message) in str(row.message) for row in left_out)
        rows = f" ({number(count, 'row')})" if count else ""
        text = f"{named(operations, 3)}: {one_line(feature, 80)} ({one_line(message, 120)}){rows}"
        yield "not provided", one_line(text, _LINE)
    provided = {row.operation for row in run.results if row.status != "not-provided"}
    missing = Counter(row.message for row in left_out if row.operation in provided and not _told(run, row))
    for reason, count in missing.items():
        yield "not provided", one_line(f"{reason or 'no reason given'} ({number(count, 'row')})", _LINE)
    absent = list(dict.fromkeys(row.operation for row in run.results if row.operation not in provided))
    if absent:
        names = named(absent, _FEW) if len(absent) <= _FEW else f"{len(absent)} other operations of the contract"
        yield "not provided", names


def _told(run: Results, row: Any) -> bool:
    """Return whether the domain says already what a row lacks."""
    domain = run.domain.get(row.operation, Domain())
    told = [_of(feature, message) for feature, message in domain.refused.items()]
    told += [f"not provided: sizes other than {rule}" for rule in domain.rules]
    return any(reason in str(row.message) for reason in told)


def _of(feature: str, message: str) -> str:
    return f"not provided: {feature} ({message})"


def not_seen(run: Results) -> Iterator[Remark]:
    """Yield for each operation the arguments left out or never varied, and the lines never run."""
    for operation, domain in run.domain.items():
        said = describe_all({operation: domain})
        if said:
            yield "not seen", one_line(f"{operation}: {', '.join(said)}", _LINE)


def measured(run: Results) -> Iterator[Remark]:
    """Yield the constants that no signature shows, and the rules on sizes."""
    for operation, domain in run.domain.items():
        for name, value in domain.constants.items():
            yield "measured", one_line(f"{operation}: {name} = {value}, {domain.how(name)}; judged by it", _LINE)
        for rule in domain.rules:
            yield "sizes", one_line(f"{operation}: {rule}", _LINE)
