"""Every quantity of one family of calls of a target, held against what the specification predicts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import sympy

from veriformer.bench import measuring, recovery, words
from veriformer.bench.document import Claim, Count, Witness, expression
from veriformer.bench.measuring import Bench, NoGradient
from veriformer.bench.metered_costs import NotCountable
from veriformer.bench.operations.family import ALLOCATIONS, CALLS, EXTRA, FLOPS, KEPT, MOVED, PEAK, WAITS, Family
from veriformer.bench.polynomials import Axis, Polynomial, value_at
from veriformer.bench.predicted_costs import adapt
from veriformer.bench.recovery import Recovered, recover
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict
from veriformer.spec.costs import symbol

_WIDTH = 4
"""Bytes of an element: calls are made in float32."""


@dataclass(frozen=True)
class Measured:
    """Counts of one family, the bench that made them, and their seconds."""

    bench: Bench
    found: Recovered
    seconds: float


def measure(bench: Bench) -> Measured:
    """Count a family at as many sizes as its degrees ask. Raises NotCountable."""
    started = time.perf_counter()
    with measuring.quiet():
        found = recover(bench.family.axes, bench.count)
    return Measured(bench, found, time.perf_counter() - started)


def differentiable(bench: Bench) -> bool:
    """Return whether the first call gives a gradient; any other error is left to the count to report."""
    sizes = {axis.name: axis.nodes[0] for axis in bench.family.axes}
    try:
        with measuring.quiet():
            call = bench.family.call(*bench.operations, sizes)
            return call.gradients and any(x.is_floating_point() for x in call.tensors) and bool(bench.count(sizes))
    except NotCountable as error:
        return not isinstance(error.__cause__, NoGradient)
    except Exception:
        return True


@dataclass(frozen=True)
class Assessment:
    """Assessment of one family of one target, in one pass or both."""

    target: Target
    family: Family
    backward: bool

    def judge(self, measured: Measured) -> Iterator[Count]:
        """Yield one record for each counted quantity."""
        waits = (WAITS,) if any(value for _, value in measured.found.values(WAITS)) else ()
        quantities = (*self._quantities(), *waits)
        seconds = round(measured.seconds / len(quantities), 4)
        for quantity in quantities:
            yield replace(self._judge(quantity, measured.found, measured.bench), seconds=seconds)

    def uncountable(self, why: object) -> Count:
        """Return the record where a call cannot be counted."""
        return uncountable_record(self.target, self.family.operation, str(why), **self._place())

    def _place(self) -> dict[str, Any]:
        return {"case": self.family.case, "passes": "forward and backward" if self.backward else "forward"}

    def _quantities(self) -> tuple[str, ...]:
        kept = (KEPT,) if self.family.costs.kept else ()
        if kept and not self.family.costs.moved:
            return kept
        return FLOPS, MOVED, PEAK, EXTRA, CALLS, ALLOCATIONS, *kept

    def _judge(self, quantity: str, found: Recovered, bench: Bench) -> Count:
        record = self._record(quantity, found, bench)
        if quantity == FLOPS and bench.uncounted:
            names = " and ".join(sorted(bench.uncounted))
            return replace(record, verdict=Verdict.NOT_COUNTABLE, reason=f"no formula for {names}", measured=None)
        measured = found.polynomials.get(quantity)
        if quantity == FLOPS and not any(value for _, value in found.values(FLOPS)):
            measured = Polynomial(tuple(axis.name for axis in found.grid.axes), {})
        judge = {
            FLOPS: self._equal,
            KEPT: self._equal,
            WAITS: self._asked,
            MOVED: self._within,
            EXTRA: self._within,
        }.get(quantity)
        if quantity in self.family.costs.grows:
            judge = self._within
        if judge is None or record.claim is None:
            return replace(record, reason=_unpredicted(quantity, measured, found))
        return judge(record, measured, found)

    def _equal(self, record: Count, measured: Polynomial | None, found: Recovered) -> Count:
        """Judge whether the counts equal the predicted ones at every call."""
        rivals = self._claims(record.quantity)
        wrong: dict[str, list[tuple[dict[str, int], int, Any]]] = {}
        flops = record.quantity == FLOPS
        again = recovery.recomputation_said(found) if flops else None
        beside = recovery.recomputation_allowed(found) if flops else [0] * len(found.counted)
        counted = [(*each, more) for each, more in zip(found.values(record.quantity), beside, strict=True)]
        for name, claim in rivals.items():
            values = [(point, value, value_at(claim, point) + more) for point, value, more in counted]
            slack = _SLACK if record.quantity == KEPT else 0
            wrong[name] = [(point, value, said) for point, value, said in values if not 0 <= value - said <= slack]
            if not wrong[name] and measured is not None:
                parts = [*([f"as {name}"] if name else []), *([again] if again else [])]
                return replace(record, verdict=Verdict.CONFIRMED, reason="; ".join(parts) or None)
        if flops and (summed := self._in_passing(measured)):
            return replace(record, verdict=Verdict.CONFIRMED, reason=summed)
        name = next(iter(rivals))
        point, value, said = min(wrong[name], key=lambda each: each[1])
        witness = Witness(point=point, counted=value, claimed=int(said) if said.is_Integer else str(said))
        why = self._difference(record.quantity, measured, found)
        reason = f"{why}; {again}" if again else why
        return replace(record, verdict=Verdict.REFUTED, witness=witness, reason=reason)

    def _in_passing(self, measured: Polynomial | None) -> str | None:
        """Return a note on extra products, at most a few for each number that the formula reads or writes anyway.

        A sum of squares that is an inner product has such. None where there are others, or fewer than the formula has.
        """
        moved = self.family.costs.moved
        if measured is None or moved is None:
            return None
        claimed = _terms(next(iter(self._claims(FLOPS).values())), measured.names)
        more = {e: measured.terms.get(e, 0) - _fraction(claimed.get(e)) for e in {**measured.terms, **claimed}}
        beside = Polynomial(measured.names, {e: c for e, c in more.items() if c})
        fewer = not beside.terms or min(beside.terms.values()) < 0
        if fewer or words.beyond(beside, _terms(_plain(moved()), measured.names)):
            return None
        return f"{words.leading(beside)} more FLOPs than the formula, a few for each number that is read or written"

    def _asked(self, record: Count, measured: Polynomial | None, found: Recovered) -> Count:
        """Refute the record: the host reads a value of an array where the formula needs none."""
        point, counts = found.counted[-1]
        witness = Witness(point=point, counted=counts.get(WAITS, 0), claimed=0)
        how_often = f"{counts.get(WAITS, 0)} times" if counts.get(WAITS, 0) > 1 else "once"
        said = f"in every call the host asks {how_often} for a value of an array: on a GPU it waits for all work before"
        return replace(record, verdict=Verdict.REFUTED, witness=witness, reason=said)

    def _difference(self, quantity: str, measured: Polynomial | None, found: Recovered) -> str:
        """Describe how the counts differ from the first claim."""
        point = found.counted[-1][0]
        claim = next(iter(self._claims(quantity).values()))
        claimed = _terms(claim, tuple(point))
        value = dict(found.counted[-1][1]).get(quantity, 0)
        said = value_at(claim, point)
        times = f"{float(value / said):.3g} times the formula" if said else f"{value} where the formula has none"
        who = words.operators(_shares(quantity, found)) if quantity == FLOPS else ""
        by = f", in {who}" if who else ""
        if quantity == FLOPS and said and not value:
            return "no matrix product was seen: what the formula multiplies so is multiplied element by element"
        if measured is not None:
            excess = words.beyond(measured, claimed)
            if excess:
                return words.growth(self.family.operation, quantity, measured, excess, who) + by
            changed = [e for e in {**measured.terms, **claimed} if measured.terms.get(e, 0) != claimed.get(e, 0)]
            top = max(changed, key=lambda e: (sum(e), e))
            instead = words.instead(measured.names, top, measured.terms.get(top, 0), claimed.get(top, 0))
            return f"{instead}: {times}{by}"
        return f"{times} at {_point(point)}{by}"

    def _within(self, record: Count, measured: Polynomial | None, found: Recovered) -> Count:
        """Judge whether the counts grow no faster than every term of the formula."""
        if measured is None:
            return replace(record, verdict=Verdict.INCONCLUSIVE, reason=_NO_POLYNOMIAL)
        envelope = [e for cost in self._envelope(record.quantity) for e in _terms(cost, measured.names)]
        excess = words.beyond(measured, envelope)
        most = words.operators(_shares(MOVED, found, excess))
        if excess:
            said = words.growth(self.family.operation, record.quantity, measured, excess, most)
            return replace(record, verdict=Verdict.REFUTED, reason=f"{said}, in {most}" if most else said)
        return replace(record, verdict=Verdict.CONFIRMED, reason=self._how_much(record, measured, found, most))

    def _how_much(self, record: Count, measured: Polynomial, found: Recovered, most: str) -> str:
        held = self._materialised(record.quantity, measured)
        if held or record.quantity in self.family.costs.grows:
            return held or "of the degrees that the formula has"
        point = found.counted[-1][0]
        value, claim = measured(point), value_at(next(iter(self._claims(record.quantity).values())), point)
        if not value:
            return "none"
        if not claim:
            return f"{words.leading(measured)} bytes more than the formula, which needs none: {most}"
        by = f", in {most}" if most and value > claim else ""
        what = "least" if record.quantity == MOVED else "formula's"
        return f"{float(value / claim):.3g} times the {what} bytes{by}"

    def _materialised(self, quantity: str, measured: Polynomial) -> str | None:
        """Return a note on memory of attention that blocks would not hold, though the printed formula does."""
        known = self.family.costs
        if known.total_in_blocks is None or known.moved is None or quantity != EXTRA:
            return None
        blocks = known.moved() + (known.extra_in_blocks() if known.extra_in_blocks else 0)
        excess = words.beyond(measured, _terms(_plain(blocks), measured.names))
        more = {e: c for e, c in excess.items() if sum(e) > 1}
        said = words.growth(self.family.operation, quantity, measured, more, "") if more else ""
        return said.replace("than the formula", "than blocks need") or None

    def _claims(self, quantity: str) -> dict[str, Any]:
        """Return the predicted costs in the letters of the family, by the name of the algorithm."""
        known = adapt(self.target.variant, self.family.costs)
        if quantity == FLOPS:
            said = known.total if self.backward else known.flops
            rivals = {"": said, "computed in blocks": known.total_in_blocks if self.backward else None}
            rivals |= known.rivals
            if self.family.letters and rivals["computed in blocks"] and self.target.variant == "in blocks":
                rivals.pop("")
        else:
            rivals = {"": {MOVED: known.moved, EXTRA: known.extra, KEPT: known.kept, WAITS: known.waits}.get(quantity)}
            if quantity == EXTRA and rivals[""] is None and known.moved is not None:
                rivals = {"": lambda: sympy.Integer(0)}
            if quantity == KEPT and known.flops is None:
                rivals |= known.rivals
        return {name: _plain(cost()) for name, cost in rivals.items() if cost is not None}

    def _envelope(self, quantity: str) -> list[Any]:
        known = adapt(self.target.variant, self.family.costs)
        if quantity in (FLOPS, KEPT):
            return [_plain(cost()) for cost in ({FLOPS: known.flops, KEPT: known.kept}[quantity],) if cost is not None]
        costs = [known.moved, known.others] if quantity == MOVED else [known.moved, known.extra]
        if self.backward or quantity == MOVED:  # both passes hold what the forward pass keeps
            costs += [known.extra, known.parameters if self.backward else None]
        return [_plain(cost()) for cost in costs if cost is not None]

    def _record(self, quantity: str, found: Recovered, bench: Bench) -> Count:
        measured, claims = found.polynomials.get(quantity), self._claims(quantity)
        text = next(iter(claims.values()), None)
        kind = "growth" if quantity in (MOVED, EXTRA, *self.family.costs.grows) else "equal"
        degree = _total_degree(text, self.family.axes) if text is not None and kind == "growth" else None
        claim = None if text is None else Claim(kind=kind, text=str(text), latex=sympy.latex(text), degree=degree)
        return Count(
            target=self.target.name,
            operation=self.family.operation,
            quantity=quantity,
            **self._place(),
            fixed={"w": _WIDTH},
            grid={a.name: {"nodes": list(a.nodes), "beyond": a.beyond} for a in found.grid.axes},
            points=len(found.counted),
            measured=None if measured is None else expression(measured.expression(symbol)),
            claim=claim,
            verdict=Verdict.COUNTED,
            modelled=sorted(bench.modelled) if quantity in (FLOPS, MOVED, EXTRA, PEAK) else [],
            tensors="real" if bench.real or self.family.values else "fake",
        )


_NO_POLYNOMIAL = "no polynomial of degree 3 or less passes through the counts"
_SLACK = 64
"""Bytes of state beside what grows: numbers such as a count of steps."""


def uncountable_record(
    target: Target, operation: str, why: str, *, case: str = "all sizes", passes: str = "forward"
) -> Count:
    """Return the record of an operation that cannot be counted, with the reason."""
    return Count(
        target=target.name,
        operation=operation,
        quantity=FLOPS,
        case=case,
        passes=passes,
        verdict=Verdict.NOT_COUNTABLE,
        reason=why,
    )


def _unpredicted(quantity: str, measured: Polynomial | None, found: Recovered) -> str | None:
    """Return the remark on a quantity that the specification has no cost for, or None."""
    if measured is None:
        return _NO_POLYNOMIAL
    if quantity != CALLS or not any(any(e) for e in measured.terms):
        return None
    return f"the number of operators grows with {', '.join(_varying(measured))}: a loop in Python"


def _varying(measured: Polynomial) -> list[str]:
    return [name for name in measured.names if measured.degree(name)]


def _shares(quantity: str, found: Recovered, excess: dict[Any, Any] | None = None) -> dict[str, Any]:
    """Return each operator's share of a quantity at the largest call, of the operators with a term of the excess."""
    counts, start = found.counted[-1][1], f"{quantity} by "
    names = [name for name in counts if name.startswith(start)]
    if excess:
        with_term = [n for n in names if n in found.polynomials and set(found.polynomials[n].terms) & set(excess)]
        names = with_term or names
    return {name.removeprefix(start): counts[name] for name in names}


def _plain(cost: Any) -> Any:
    return sympy.factor(sympy.sympify(cost).subs(symbol("w"), _WIDTH))


def _terms(cost: Any, names: tuple[str, ...]) -> dict[tuple[int, ...], Any]:
    """Return the monomials of a cost: exponents to coefficient."""
    if not cost:
        return {}
    return dict(sympy.Poly(sympy.expand(cost), *(symbol(name) for name in names)).terms())


def _fraction(c: Any) -> Fraction:
    return Fraction(0) if c is None else Fraction(int(c.p), int(c.q))


def _total_degree(cost: Any, axes: Iterable[Axis]) -> int:
    letters = sorted(cost.free_symbols & {symbol(axis.name) for axis in axes}, key=str)
    return int(sympy.Poly(cost, *letters).total_degree()) if letters else 0


def _point(point: dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in point.items())
