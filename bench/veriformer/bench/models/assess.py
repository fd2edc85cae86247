"""Counts of whole models: each kind of call against what the forward pass and the specification say of it.

Nobody says which sizes a model has. So what the others must cost is taken from the forward pass: over n tokens it costs
W n + A n², where W is two FLOPs for each weight, and A four for each number of a token's queries. A training step is
then three times that, a step with a cache of t tokens W + A t, and so on: the specification proves each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

from veriformer.bench.assessment import Assessment, Measured, measure
from veriformer.bench.document import Count
from veriformer.bench.measuring import Bench
from veriformer.bench.metered_costs import NotCountable
from veriformer.bench.models import calls
from veriformer.bench.operations.family import EXTRA, FLOPS, KEPT, MOVED, Call, Costs, Family
from veriformer.bench.polynomials import Axis, Polynomial
from veriformer.bench.recovery import renamed
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict
from veriformer.bench.words import MODEL
from veriformer.spec.blocks import costs_model
from veriformer.spec.costs import symbol

if TYPE_CHECKING:
    from veriformer.bench.operations.family import Operation


_WIDTH = 4
"""Bytes of an element."""

_BATCHES = Axis("B", (2, 3, 4), 5)  # of one text some operators leave out a copy
# Long texts, where the largest of several terms stays the largest, in multiples of the blocks that kernels take; short
# ones for models that read no longer ones.
LONG = {x: Axis(x, (256, 384, 512, 640), 768) for x in "nt"}
SHORT = {x: Axis(x, (24, 32, 40, 48), 64) for x in "nt"}
_STEPS = {"B": _BATCHES, "s": Axis("s", (3, 4, 6, 8), 11)}

FORWARD, TRAINING, PREFILL, HELD = "forward pass", "training step", "prefill", "cache after prefill"
STEP, PLAIN_STEP = "decoding step with a cache", "decoding step without a cache"
TEXT, PLAIN_TEXT = "generation with a cache", "generation without a cache"


@dataclass(frozen=True)
class Base:
    """Base of the predictions: FLOPs for each token, and for each pair of tokens; None where unknown.

    source: the kind of call that tells it. block: the side of the blocks that are left out where a causal mask hides
    them as a whole; None where none are. row: bytes that the cache holds for a token; reserved: for a text, where it
    holds as many however long the text is.
    """

    token: Fraction | None = None
    pair: Fraction | None = None
    source: str | None = None
    block: Fraction | None = None
    row: Fraction | None = None
    reserved: Fraction | None = None


def calls_of(case: str, lengths: dict[str, Axis]) -> Family:
    """Return the calls of one kind, of which nothing is predicted yet."""
    letters, call, beside = _CALLS[case]
    return Family(MODEL, letters, call, case=case, nodes={**lengths, **_STEPS}, beside=beside)


_CALLS: dict[str, tuple[str, Callable[..., Call], tuple[str, ...]]] = {
    FORWARD: ("B n", calls.forward, ()),
    STEP: ("B t", calls.step, ()),
    HELD: ("B n", calls.held, ()),
    TRAINING: ("B n", calls.training, ("adamw",)),
    PREFILL: ("B n", calls.prefill, ()),
    PLAIN_STEP: ("B t", calls.step_without_cache, ()),
    TEXT: ("s", calls.generation, ()),
    PLAIN_TEXT: ("s", calls.generation_without_cache, ()),
}
CASES = tuple(_CALLS)


def base_of(forward: Polynomial | None, step: Polynomial | None, held: Polynomial | None) -> Base:
    """Return the base costs from counts of the forward pass, a step, and the cache, each None where no polynomial."""
    row, whole = (held.terms.get((1, 1)), held.terms.get((1, 0))) if held is not None else (None, None)
    known = Base(row=row, reserved=whole if row is None else None)
    linear = None if step is None or not set(step.terms) <= {(1, 0), (1, 1)} else _pair(step, (1, 0), (1, 1))
    square = None if forward is None or not set(forward.terms) <= {(1, 1), (1, 2)} else _pair(forward, (1, 1), (1, 2))
    if square is None:
        return known if linear is None else replace(known, token=linear[0], pair=linear[1], source=STEP)
    if linear is not None and square[1] and linear[1] == 2 * square[1]:
        # With blocks of T left out n² are n (n + T) / 2 pairs, and a step, which leaves out none, tells them apart.
        block = (square[0] - linear[0]) / square[1]
        if block.denominator == 1 and block > 0:
            return replace(known, token=linear[0], pair=linear[1], source=FORWARD, block=block)
    return replace(known, token=square[0], pair=square[1], source=FORWARD)


def _pair(through: Polynomial, *exponents: tuple[int, int]) -> tuple[Fraction, Fraction]:
    first, second = (through.terms.get(e, Fraction(0)) for e in exponents)
    return first, second


def predicted(case: str, known: Base, step: Polynomial | None) -> Costs:
    """Return the costs of one kind of call, from the specification and what the model's forward pass costs."""
    b, n, t, s = (symbol(x) for x in "Bnts")
    weights, row = _WIDTH * _rational(known.token) / 2, _rational(known.row)
    if case == HELD:
        return Costs(kept=lambda: b * costs_model.cache_bytes(), grows=(KEPT,))
    if case == STEP:
        found = Costs(moved=lambda: weights + row * b * t, others=lambda: b * t, extra=lambda: b * t, grows=(EXTRA,))
    elif case == TEXT:
        read = weights * s + row * s * (s + 1) / 2
        found = Costs(moved=lambda: read, others=lambda: s**2, extra=lambda: s, grows=(EXTRA,))
    elif case == PLAIN_TEXT:  # its texts are too short to tell which of several moments is the worst
        found = Costs()
    else:
        m = t if case == PLAIN_STEP else n
        found = Costs(
            moved=lambda: weights + 8 * b * m,
            others=lambda: b * m**2,
            extra=lambda: b * m**2 + b * m,
            total_in_blocks=lambda: sympy.Integer(0),
            grows=(MOVED, EXTRA),
        )
    flops = {} if case == known.source else _flops_of(case, known)
    if not flops:
        return replace(found, flops=lambda: _growth(case), grows=(FLOPS, *found.grows))
    ways = {name: lambda cost=cost: cost for name, cost in (flops | _window(case, known, step)).items()}
    return replace(found, flops=ways.pop(""), rivals=ways)


def _flops_of(case: str, known: Base) -> dict[str, Any]:
    """Return the FLOPs that a call may cost, by the name of the algorithm; empty where unknown."""
    if known.token is None or known.pair is None:
        return {}
    b, n, t, s = (symbol(x) for x in "Bnts")
    token, pair = _rational(known.token), _rational(known.pair)

    def forward(length: Any) -> Any:
        pairs = length**2 if known.block is None else length * (length + _rational(known.block)) / 2
        return token * length + pair * pairs

    return {
        FORWARD: {"": b * forward(n)},
        PREFILL: {"": b * forward(n)},
        TRAINING: {
            "": 3 * b * forward(n),
            "computed in blocks": b * (3 * forward(n) + (forward(n) - token * n) / 2),  # the scores once more
        },
        PLAIN_STEP: {"": b * forward(t)},
        STEP: {"": b * (token + pair * t)},
        TEXT: {"": sympy.expand(token * s + pair * s * (s + 1) / 2)},
        # Texts that are shorter than a block.
        PLAIN_TEXT: {"": sympy.expand(sympy.summation(token * n + pair * n**2, (n, 1, s)))},
    }[case]


def _window(case: str, known: Base, step: Polynomial | None) -> dict[str, Any]:
    """Return a step that sees a window of w tokens costs the same at every length."""
    if case != STEP or step is None or not known.pair or known.token is None or set(step.terms) - {(1, 0)}:
        return {}
    width = (step.terms.get((1, 0), Fraction(0)) - known.token) / known.pair
    if width.denominator != 1 or not 1 <= width <= SHORT["t"].nodes[0]:
        return {}
    return {f"with a window of {width} tokens": symbol("B") * _rational(known.token + known.pair * width)}


def _growth(case: str) -> Any:
    """Return the specification's formula, whose degrees a model of other sizes has too."""
    b, n, t, s = (symbol(x) for x in "Bnts")
    text = costs_model.forward_flops()
    return {
        FORWARD: b * text,
        PREFILL: b * text,
        TRAINING: b * costs_model.training_flops(),
        STEP: b * costs_model.step_flops().subs(n, t),
        PLAIN_STEP: b * text.subs(n, t),
        TEXT: sympy.summation(costs_model.step_flops(), (n, 1, s)),
        PLAIN_TEXT: sympy.summation(text, (n, 1, s)),
    }[case]


def _rational(value: Fraction | None) -> Any:
    return sympy.Rational(value.numerator, value.denominator) if value is not None else sympy.Integer(0)


_APPENDING = ("cat", "stack", "copy_", "constant_pad_nd", "roll", "slice_scatter", "index_put", "index_copy")
"""Operators by which a cache copies itself, where it does."""


def assess(target: Target) -> Iterator[Count]:
    """Yield every quantity of every kind of call."""
    found: dict[str, Measured | NotCountable] = {}
    for case in CASES:
        same = found.get(FORWARD) if case == PLAIN_STEP else None
        found[case] = _measure(target, case) if same is None else _as_step(same)
    forward, step = (_flops(found.get(case)) for case in (FORWARD, STEP))
    held = _polynomial(found.get(HELD), KEPT)
    base = base_of(forward, step, held)
    for case in CASES:
        measured = found[case]
        known = predicted(case, base, step)
        if isinstance(measured, NotCountable):
            yield Assessment(target, replace(calls_of(case, LONG), costs=known), False).uncountable(measured)
            continue
        family = replace(measured.bench.family, costs=known)
        for one in Assessment(target, family, False).judge(measured):
            yield _explained(one, measured, base, forward)


def _measure(target: Target, case: str) -> Measured | NotCountable:
    """Count over long texts, over short ones where those cannot be counted, or return the reason for neither."""
    error = NotCountable()
    for lengths in (LONG, SHORT):
        family = calls_of(case, lengths)
        operations = tuple(_operation(target, name) for name in (family.operation, *family.beside))
        try:
            return measure(Bench(family, operations, backward=False))
        except NotCountable as raised:
            error = raised
    return error


def _as_step(forward: Measured | NotCountable) -> Measured | NotCountable:
    """Return a step without a cache is a forward pass over t tokens; what it takes of the logits is a view of them."""
    if isinstance(forward, NotCountable):
        return forward
    lengths = next(lengths for lengths in (LONG, SHORT) if lengths["n"] in forward.bench.family.axes)
    bench = replace(forward.bench, family=calls_of(PLAIN_STEP, lengths))
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
