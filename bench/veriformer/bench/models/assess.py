"""Counts of whole models: each kind of call against what the forward pass and the specification say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from veriformer.bench.assessment import Assessment, Measured, measure
from veriformer.bench.document import Count
from veriformer.bench.measuring import Bench
from veriformer.bench.metered_costs import NotCountable
from veriformer.bench.models import families
from veriformer.bench.models.families import CASES, FORWARD, HELD, LONG, PLAIN_STEP, SHORT, STEP, TRAINING, Base
from veriformer.bench.polynomials import Polynomial
from veriformer.bench.quantities import FLOPS, KEPT, MOVED
from veriformer.bench.recovery import renamed
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict

if TYPE_CHECKING:
    from veriformer.bench.operations.family import Operation

_APPENDING = ("cat", "stack", "copy_", "constant_pad_nd", "roll", "slice_scatter", "index_put", "index_copy")
"""Operators by which a cache copies itself, where it does."""


def assess(target: Target) -> Iterator[Count]:
    """Every quantity of every kind of call."""
    found: dict[str, Measured | NotCountable] = {}
    for case in CASES:
        same = found.get(FORWARD) if case == PLAIN_STEP else None
        found[case] = _measure(target, case) if same is None else _as_step(same)
    forward, step = (_flops(found.get(case)) for case in (FORWARD, STEP))
    held = _polynomial(found.get(HELD), KEPT)
    base = families.base(forward, step, held)
    for case in CASES:
        measured = found[case]
        known = families.predicted(case, base, step)
        if isinstance(measured, NotCountable):
            yield Assessment(target, replace(families.family(case, LONG), costs=known), False).uncountable(measured)
            continue
        family = replace(measured.bench.family, costs=known)
        for one in Assessment(target, family, False).judge(measured):
            yield _explained(one, measured, base, forward)


def _measure(target: Target, case: str) -> Measured | NotCountable:
    """Counted over long texts, over short ones where those cannot be, or why it cannot be at all."""
    error = NotCountable()
    for lengths in (LONG, SHORT):
        family = families.family(case, lengths)
        operations = tuple(_operation(target, name) for name in (family.operation, *family.beside))
        try:
            return measure(Bench(family, operations, backward=False))
        except NotCountable as raised:
            error = raised
    return error


def _as_step(forward: Measured | NotCountable) -> Measured | NotCountable:
    """A step without a cache is a forward pass over t tokens; what it takes of the logits is a view of them."""
    if isinstance(forward, NotCountable):
        return forward
    lengths = next(lengths for lengths in (LONG, SHORT) if lengths["n"] in forward.bench.family.axes)
    bench = replace(forward.bench, family=families.family(PLAIN_STEP, lengths))
    return replace(forward, bench=bench, found=renamed(forward.found, {"n": "t"}), seconds=0.0)


def _operation(target: Target, name: str) -> Operation:
    found = target.operation(name)
    if found is None:
        import torch

        return torch.optim.AdamW  # a model that brings no optimizer is trained by PyTorch's
    return found


def _polynomial(measured: Measured | NotCountable | None, quantity: str) -> Polynomial | None:
    return measured.found.polynomials.get(quantity) if isinstance(measured, Measured) else None


def _flops(measured: Measured | NotCountable | None) -> Polynomial | None:
    if not isinstance(measured, Measured) or measured.bench.uncounted:
        return None
    return _polynomial(measured, FLOPS)


def _explained(one: Count, measured: Measured, base: Base, forward: Polynomial | None) -> Count:
    """Add to a count the reason that only the model's other calls tell."""
    polynomials = measured.found.polynomials
    if one.case == STEP and one.quantity == MOVED and one.verdict is Verdict.CONFIRMED:
        return _copied(one, measured, base)
    counted = polynomials.get(one.quantity)
    if one.quantity != FLOPS or counted is None:
        return one
    if one.case == base.source and one.verdict is Verdict.CONFIRMED and base.token is not None:
        hidden = "" if base.block is None else f", but for hidden blocks of {base.block} × {base.block}"
        return replace(one, reason=f"{base.token / 2} weights for each token, {base.pair} for each pair{hidden}")
    if one.verdict is not Verdict.REFUTED:
        return one
    if one.case == STEP and not counted.degree("t"):
        return replace(one, reason=f"{one.reason}: the whole capacity is read, whatever the length")
    if one.case == TRAINING and forward and counted.terms == {e: 4 * c for e, c in forward.terms.items()}:
        return replace(one, reason=f"{one.reason}: the forward pass is computed twice")
    return one


def _copied(one: Count, measured: Measured, base: Base) -> Count:
    """Judge the bytes of the cache that a step moves besides reading it.

    A cache that grows by concatenation moves more than the least, of no other degree: that is said. One whose memory is
    reserved has no reason to, and is refuted.
    """
    polynomials = measured.found.polynomials
    longest = max(point["t"] for point, _ in measured.found.counted)
    for name in _APPENDING:
        terms = getattr(polynomials.get(f"{MOVED} by {name}"), "terms", {})
        again = terms.get((1, 1), Fraction(0))  # read and written
        whole = again * longest + terms.get((1, 0), Fraction(0))
        if base.row and again >= base.row:
            said = f"every step copies the cache: {name} moves {again} bytes for each earlier token"
            rest = f"of which the cache holds {base.row}; an append in place moves none"
            return replace(one, reason=f"{one.reason}; {said}, {rest}")
        if base.reserved and whole >= base.reserved:
            said = f"{name} moves {whole} bytes in a step, though {base.reserved} bytes are reserved for a text"
            return replace(one, verdict=Verdict.REFUTED, reason=f"the cache copies itself: {said}")
    return one
