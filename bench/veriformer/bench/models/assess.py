"""Counts of whole models: each kind of call against what the forward pass and the specification say of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from veriformer.bench.assessment import Assessment, Measured, measure
from veriformer.bench.document import Count
from veriformer.bench.flops import NotCountable
from veriformer.bench.measuring import FLOPS, KEPT, MOVED
from veriformer.bench.models import families
from veriformer.bench.models.families import CASES, FORWARD, HELD, LONG, SHORT, STEP, TRAINING, Base
from veriformer.bench.polynomials import Polynomial
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict

if TYPE_CHECKING:
    from veriformer.bench.operations.family import Operation

_APPENDING = ("cat", "stack", "copy_", "constant_pad_nd", "roll", "slice_scatter", "index_put", "index_copy")
"""Operators by which a cache that copies itself does so."""


def assess(target: Target) -> Iterator[Count]:
    """Every quantity of every kind of call."""
    found = {case: _measure(target, case) for case in CASES}
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
            return measure(family, operations)
        except NotCountable as raised:
            error = raised
    return error


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
    """The same with what only a model's other calls tell."""
    polynomials = measured.found.polynomials
    if one.case == STEP and one.quantity == MOVED and one.verdict is Verdict.CONFIRMED:
        return _copied(one, polynomials, base)
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


def _copied(one: Count, polynomials: dict[str, Polynomial], base: Base) -> Count:
    """Refuted where as much is written again, for each earlier token, as half of the cache holds of it."""
    moved = {name: polynomials[f"{MOVED} by {name}"] for name in _APPENDING if f"{MOVED} by {name}" in polynomials}
    for name, through in moved.items():
        again = through.terms.get((1, 1), Fraction(0))  # read and written
        if base.row and again >= base.row:
            said = f"{again} bytes for each earlier token, of which the cache holds {base.row}"
            return replace(one, verdict=Verdict.REFUTED, reason=f"the cache copies itself: {name} moves {said}")
    return one
