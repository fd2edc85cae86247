"""Tolerance between two results: measured rounding errors of the reference, number by number.

For number i of a result, a_i is what the reference gives, e_i the same evaluated in float64 (where it can be), and
s_i the spread that one roundoff in every operation, argument and weight gives it, over m perturbed runs. With N
numbers judged in all, t the quantile of Student's distribution with m degrees of freedom, and b_i the candidate's:

    min(|b_i − a_i|, |b_i − e_i|) ≤ t_m⁻¹(1 − ERROR_RATE / 2N) √(s_i² + (a_i − e_i)²) + one unit in the last place.

Of gradients, where formulas that are equal cancel otherwise, that unit is the one of the largest number. What lies
within the farthest perturbed run is never accused: a step (a rounding, a comparison, a choice) is near.
What was observed is every call of the candidate, so judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.references import quantities, unit
from veriformer.verify.comparison.session import Ran
from veriformer.verify.operations.models.noise import factor

_AFTER = " after the call"

_OWN = 16.0
"""Spreads up to which the reference's distance from float64 counts as its own error; more is another computation."""


@dataclass(frozen=True)
class Difference:
    """Difference of a call.

    kind: ``values``, ``gradient``, ``state``, ``raises``, ``shape``, ``dtype``, ``type``, ``parts``, ``not finite``,
    ``late``, ``overwritten``, ``changed``, ``alias``, ``no gradient``, ``ends``, ``hangs``. place: the quantity. ratio:
    of the worst error to its limit. error: roundoff of a format so coarse that it would explain the difference. worst:
    the indices of the worst numbers, with the observed and the expected value and the limit of their difference.
    """

    kind: str
    place: str = ""
    said: str = ""
    ratio: float = float("inf")
    error: float = 0.0
    wrong: int = 0
    total: int = 0
    worst: tuple[tuple[tuple[int, ...], float, float, float], ...] = ()


@dataclass
class Judged:
    """Judged call. power: the relative deviation that would have been found. record: of the call."""

    differences: list[Difference]
    worst: float = 0.0
    power: float | None = None
    record: dict[str, Any] = field(default_factory=dict)


def judge(reference: dict[str, Any], record: dict[str, Any], judged: int) -> Judged:
    """Hold what a candidate gave against what is known of the reference. judged: numbers in the whole comparison."""
    mine, theirs = quantities(reference["record"]), quantities(record)
    found = Judged([])
    if record["error"]:
        found.differences.append(Difference("raises", said=f"{record['error'][0]}: {record['error'][1]}"))
        return found
    _forms(reference["record"], record, found)
    powers = []
    for name, x in mine.items():
        kind = _kind(name)
        if kind == "gradient" and not record.get("gradients"):
            continue
        if name not in theirs:
            if kind == "values":
                found.differences.append(Difference("parts", name, "is missing"))
            elif kind == "state" and name.removesuffix(_AFTER) in record.get("held", ()):
                found.differences.append(Difference("state", name, "is what it was before"))
            continue
        if not isinstance(x, torch.Tensor | int | float) or isinstance(x, bool):
            if x != theirs[name]:
                found.differences.append(Difference("values", name, f"{theirs[name]!r} instead of {x!r}"))
            continue
        power = _number(name, kind, x, theirs[name], reference, judged, found)
        if power is not None and kind == "values":
            powers.append(power)
    found.power = max(powers, default=None)
    return found


def _kind(name: str) -> str:
    if name.startswith("the gradient of"):
        return "gradient"
    return "state" if name.endswith(_AFTER) else "values"


def _forms(mine: dict[str, Any], theirs: dict[str, Any], found: Judged) -> None:
    """Add the differences beside the numbers: parts, types, late and overwritten results, changed arguments,
    aliases."""
    extra = [place for place in theirs["results"] if place not in mine["results"]]
    if extra:
        found.differences.append(Difference("parts", f"result{extra[0]}", "is more than the reference gives"))
    for place, name in theirs["types"].items():
        if mine["types"].get(place) != name:
            found.differences.append(Difference("type", f"result{place}", f"is a {name}, no plain tensor"))
    for kind, key in (("late", "unfinished"), ("overwritten", "overwritten")):
        if theirs.get(key) and not mine.get(key):
            found.differences.append(Difference(kind, f"result{theirs[key][0]}"))
    for place in theirs.get("changed", {}):
        if place not in mine.get("changed", {}):
            found.differences.append(Difference("changed", place))
    known = {tuple(pair) for pair in mine.get("aliases", [])}
    for place, given in theirs.get("aliases", []):
        if (place, given) not in known:
            found.differences.append(Difference("alias", f"result{place}", given))
    if mine.get("gradients") and not theirs.get("gradients"):
        found.differences.append(Difference("no gradient"))


def _number(
    name: str, kind: str, x: Any, y: Any, reference: dict[str, Any], judged: int, found: Judged
) -> float | None:
    if not isinstance(y, torch.Tensor | int | float):
        found.differences.append(Difference("type", name, f"is {y!r}"))
        return None
    a, b = torch.as_tensor(x), torch.as_tensor(y)
    if a.shape != b.shape:
        found.differences.append(Difference("shape", name, f"{tuple(b.shape)} instead of {tuple(a.shape)}"))
        return None
    if isinstance(x, torch.Tensor) and a.dtype != b.dtype:
        found.differences.append(Difference("dtype", name, f"{b.dtype} instead of {a.dtype}".replace("torch.", "")))
    return _values(name, kind, a, b, reference, judged, found)


def _wide(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().cpu()
    return torch.view_as_real(x.to(torch.complex128)) if x.is_complex() else x.double()


def limits(reference: dict[str, Any], name: str, a: torch.Tensor, judged: int) -> tuple[torch.Tensor, ...]:
    """Return the expected values in float64, the spread of each number, and the limit of its error."""
    wide = _wide(a)
    exact = reference["exact"].get(name)
    exact = _wide(torch.as_tensor(exact)) if isinstance(exact, torch.Tensor | int | float) else wide
    exact = exact if exact.shape == wide.shape else wide
    exact = torch.where(exact.isfinite(), exact, wide)
    spread, most = reference["spread"][name], reference["most"][name]
    eps = unit(a.dtype)
    size = wide.abs()
    if _kind(name) == "gradient" and size.numel():
        size = size.nan_to_num(0.0, 0.0, 0.0).max().expand_as(size)
    floor = eps * size + (torch.finfo(a.dtype).tiny if eps else 0.0)
    own = (wide - exact).abs().nan_to_num(0.0)
    own = torch.minimum(own, _OWN * spread + floor)
    size = (spread.square() + own.square()).sqrt()
    bound = torch.maximum(factor(reference["runs"], judged) * size, most) + floor
    if not eps:  # a place or a choice: where rounding changes it at all, any other may be right as well
        bound = torch.where(most > 0, torch.full_like(bound, float("inf")), bound)
    return exact, size + floor, bound.nan_to_num(float("inf"), float("inf"))


def _values(
    name: str, kind: str, a: torch.Tensor, b: torch.Tensor, reference: dict[str, Any], judged: int, found: Judged
) -> float | None:
    wide, got = _wide(a), _wide(b)
    if not wide.numel():
        return None
    exact, size, bound = limits(reference, name, a, judged)
    finite = wide.isfinite()
    off = torch.minimum((got - wide).abs(), (got - exact).abs())
    off[(got == wide) | ~finite] = 0.0
    broken = finite & ~got.isfinite() & bound.isfinite()
    ratio = torch.where(off == 0, off, off / bound)
    ratio[bound.isinf()] = 0.0
    ratio[broken] = float("inf")
    ratio = ratio.nan_to_num(0.0, float("inf"))
    found.worst = max(found.worst, float(ratio.max()))
    bad = ratio > 1
    if bool(bad.any()):
        unequal = torch.where(bound.isinf() | ~got.isfinite(), torch.zeros_like(off), off / size)
        coarse = float(unequal.max()) * (unit(a.dtype) or 1.0) / 4
        places = ratio.flatten().topk(min(4, ratio.numel())).indices.tolist()
        worst = tuple(
            (
                tuple(int(i) for i in torch.unravel_index(torch.tensor(p), ratio.shape)),
                float(got.flatten()[p]),
                float(exact.flatten()[p]),
                float(bound.flatten()[p]),
            )
            for p in places
            if float(ratio.flatten()[p]) > 1
        )
        found.differences.append(
            Difference(
                "not finite" if bool(broken[bad].all()) else kind,
                name,
                ratio=float(ratio.max()),
                error=coarse,
                wrong=int(bad.sum()),
                total=int(finite.sum()),
                worst=worst,
            )
        )
    known = bound[finite & bound.isfinite() & (wide != 0)]
    if not known.numel():
        known = bound[finite & bound.isfinite()]
    typical = wide[finite].abs().square().mean().sqrt() if bool(finite.any()) else torch.zeros(())
    if not known.numel():
        return float("inf")
    return float(known.median() / typical) if float(typical) else float("inf") if float(known.median()) > 1e-30 else 0.0


NUMERIC = ("values", "gradient", "state", "not finite")
"""Differences in numbers."""


@dataclass
class Evidence:
    """Judged call of the candidate. process: ``first``, ``second``, ``alone``, ``smaller``."""

    name: str
    case: Case
    process: str
    judged: Judged

    @property
    def history(self) -> str:
        """Circumstance of the calls before it: ``refilled``, ``replaced``, ``again``, ``call 8``, or empty."""
        return self.name.partition(".")[2]

    def differs(self, *kinds: str) -> list[Difference]:
        """Return the differences of these kinds; all differences where no kind is named."""
        return [one for one in self.judged.differences if not kinds or one.kind in kinds]


@dataclass
class Observed:
    """Everything that was observed in a comparison.

    references: by case, what is known of the reference's call. after: by failing case, whether it is right where the
    reference ran before in the same process. filled: by failing case, whether it is wrong alone only with memory that
    nobody has written full of NaN. raised: by the candidate where the reference draws random numbers. why: why there is
    no verdict, where there is none.
    """

    reference: str
    candidate: str
    inputs: str | None
    device: str
    folder: Path
    prepared: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, Case] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    references: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)
    chances: dict[str, tuple[str, float, float]] = field(default_factory=dict)
    raised: str = ""
    after: dict[str, bool] = field(default_factory=dict)
    filled: dict[str, bool] = field(default_factory=dict)
    similarity: float | None = None
    untried: list[str] = field(default_factory=list)
    why: str = ""
    started: str = ""
    seconds: float = 0.0

    def of(self, process: str) -> list[Evidence]:
        """Return the calls of one process."""
        return [one for one in self.evidence if one.process == process]

    def numbers(self) -> int:
        """Return the number of scalars that are judged, over all calls."""
        return 3 * sum(int(x.numel()) for ref in self.references.values() for x in ref["spread"].values())


def take(found: Observed, process: str, ran: Ran) -> list[Evidence]:
    """Judge every call of some processes."""
    count, taken = found.numbers(), []
    for name, record in ran.records.items():
        of = name.partition(".")[0]
        if of in found.references:
            taken.append(Evidence(name, found.cases[of], process, judge(found.references[of], record, count)))
            taken[-1].judged.record = record
    found.evidence += taken
    if ran.found:
        found.seen.append({**ran.found, "process": process})
    return taken


def failing_calls(found: Observed, processes: Sequence[str] = ("first", "second")) -> Iterator[Evidence]:
    """Yield calls that differ in numbers, shapes, dtypes or parts, or raise."""
    for one in found.evidence:
        if one.process in processes and one.differs(*NUMERIC, "raises", "shape", "dtype", "parts"):
            yield one
