"""Overflow in half precision, which operations share that form a large intermediate result: told once for all."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from veriformer.spec.requirement import Weight
from veriformer.verify.contract import dtypes
from veriformer.verify.findings.evidence import Example
from veriformer.verify.findings.sentence import WIDER
from veriformer.verify.findings.signature import Failing
from veriformer.verify.results.finding import Finding, likewise

WORDS = "overflow in half precision: what is finite comes out as infinite, NaN or 0"

_LOST = re.compile(r"observed (?:nan|-?inf|-?0(?![.\d]))|not finite")
_OF_SIZES = re.compile(r"with (?:large|huge) values")
_SIZES = (
    *("large values in ", "huge values in ", "tiny values in ", "subnormal values in "),
    *("constant rows of ", "a mean of "),
)
"""Prefixes of the features of calls whose intermediate results may leave the range of half precision: squares and
products of extreme entries, powers of a spread that is nearly 0."""


def lost(example: Example) -> bool:
    """Return whether a finite result came out as infinite, NaN or 0."""
    known = example.signature
    return known is not None and known.kind is not Failing.RAISES and bool(_LOST.search(example.message))


def near_the_edge(call: frozenset[str]) -> bool:
    """Return whether a call is of finite values whose squares or products may leave the range of half precision."""
    finite = not any(name.startswith(("NaN in", "inf in", "-inf in")) for name in call)
    return finite and any(name.startswith(_SIZES) for name in call)


def overflows(finding: Finding) -> bool:
    """Return whether a finding is about a finite result of finite input in half precision that is lost."""
    if WORDS in finding.what:
        return True
    ranges = finding.requirements and all(slug.endswith(".range") for slug in finding.requirements)
    halves = finding.dtypes and set(finding.dtypes) <= set(dtypes.HALVES)
    return bool(
        finding.weight in (Weight.FRAGILE, Weight.WEAKNESS)
        and ranges
        and halves
        and _LOST.search(finding.message or "")
    )


def told_once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, those of overflow in half precision as one for each weight."""
    listed = list(findings)
    found: dict[Weight, list[Finding]] = {}
    for finding in filter(overflows, listed):
        found.setdefault(finding.weight, []).append(finding)
    return [*(one for one in listed if not overflows(one)), *map(_of, found.values())]


def _of(found: Sequence[Finding]) -> Finding:
    """Merge findings into one. When it happens is told where values are why; that rows are long is not."""
    first, *others = found
    operations = ", ".join(dict.fromkeys(finding.operation for finding in found))
    when = first.when if not others and _OF_SIZES.search(first.when or "") else None
    return replace(
        first,
        id=first.id if not others else hashlib.sha256("|".join(one.id for one in found).encode()).hexdigest()[:8],
        operation=operations,
        what=f"{operations}: {WORDS}{likewise(first.witness)}",
        when=when,
        dtypes=_each(found, "dtypes"),
        requirements=_each(found, "requirements"),
        rows=_each(found, "rows"),
        precedents=_each(found, "precedents"),
        confirmed=all(finding.confirmed for finding in found),
        fix=WIDER if all(finding.confirmed for finding in found) else None,
    )


def _each(found: Sequence[Finding], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for finding in found for value in getattr(finding, name)))
