"""Exact counts on grids of shapes, as polynomials, against the specification's.

A count is no measurement: it is the same everywhere and always. The polynomial through all counts of a grid is the only
one of the degrees that the grid can tell apart: agreement there is equality, and one count that differs refutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import sympy

from veriformer.bench.document import Claim, Count, Witness, expression
from veriformer.bench.metered_costs import Attention, NotCountable, Shape, count_flops, count_peak_bytes, modelled
from veriformer.bench.polynomials import Axis, Grid, Point, Polynomial, value_at
from veriformer.bench.recovery import Recovered, recover
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict
from veriformer.spec.costs import symbol

FLOPS, PEAK = "FLOPs", "peak extra bytes"
_COUNTERS: dict[str, Callable[..., int]] = {FLOPS: count_flops, PEAK: count_peak_bytes}
_BLOCK = 128
"""Where no blocks are skipped, lengths of the causal case are multiples of this."""

_SIZES = ("B", "H", "G", "n_q", "n_k", "d_k", "d_v")
_Letters = Mapping[str, "int | str"]


def count(target: Target) -> Iterator[Count]:
    """Yield counts of an attention that claims how it is computed: FLOPs at all lengths and causal, and peak memory."""
    for series in _series(target) if target.attention and target.costs else ():
        yield series.count()


def _series(target: Target) -> list[Series]:
    kinds = [(RECTANGULAR, FLOPS), (causal(_block(target)), FLOPS), (SQUARE, PEAK)]
    return [Series(target, case, quantity, backward) for case, quantity in kinds for backward in (False, True)]


def _block(target: Target) -> int:
    """Return the block size that causal lengths are multiples of; what cannot be counted is said when it is counted."""
    try:
        return block_size(target.backend[0]) if target.skips_blocks else _BLOCK
    except NotCountable:
        return _BLOCK


def block_size(attention: Attention) -> int:
    """Return T, inferred from one count: of n × n pairs under a causal mask, blocks of T × T leave n (n + T) / 2.

    A grid must show that it holds at every length. Raises NotCountable where no block size explains the count.
    """
    n = 1024
    shape = Shape(B=1, H=1, G=1, n_q=n, n_k=n, d_k=1, d_v=1, options={"is_causal": True})
    flops = count_flops(attention, shape, backward=False)
    block = flops // (2 * n) - n  # 2 (d_k + d_v) = 4 FLOPs a pair
    if flops % (2 * n) or block < 1 or n % block:
        raise NotCountable(f"{flops} FLOPs at n = {n} under a causal mask are not those of square blocks")
    return block


Counted = list[tuple[dict[str, int], int]]


@dataclass(frozen=True)
class Series:
    """Counts of one quantity of one family of calls of a target."""

    target: Target
    case: Case
    quantity: str
    backward: bool

    def count(self) -> Count:
        """Count it at every point, and judge what the specification predicts."""
        started = time.perf_counter()
        try:
            found = self._judge(recover(self.case.grid.axes, lambda point: {self.quantity: self._at(point)}))
        except NotCountable as error:
            found = self._record(verdict=Verdict.NOT_COUNTABLE, reason=str(error))
        return replace(found, seconds=round(time.perf_counter() - started, 3))

    def _at(self, point: Point) -> int:
        return _COUNTERS[self.quantity](self.target.backend[0], self.case.shape(point), backward=self.backward)

    def _judge(self, found: Recovered) -> Count:
        counted, measured = found.values(self.quantity), found.polynomials.get(self.quantity)
        judge = self._equality if self.quantity == FLOPS else self._growth
        shown = None if measured is None else expression(measured.expression(symbol))
        inside = self._modelled(counted[0][0])
        record = self._record(grid=_nodes(found.grid), **judge(measured, counted))
        return replace(record, points=len(counted), measured=shown, modelled=inside)

    def _modelled(self, point: Point) -> list[str]:
        """Return the operators at a point whose FLOPs are modelled."""
        return modelled(self.target.backend[0], self.case.shape(point), backward=self.backward)

    def _equality(self, measured: Polynomial | None, counted: Counted) -> dict[str, Any]:
        """Judge whether the predicted FLOPs equal the counted ones, as polynomials; a count that differs is the
        witness.
        """
        claim = self._predicted()
        wrong = [(point, value) for point, value in counted if value_at(claim, point) != value]
        if wrong:
            point, value = min(wrong, key=lambda pair: pair[1])
            right = next((other for other, count in counted if value_at(claim, other) == count), None)
            if right is not None and self._modelled(right) != self._modelled(point):
                return {"verdict": Verdict.NOT_COUNTABLE, "reason": _SEVERAL_KERNELS}
            witness = Witness(point=point, counted=value, claimed=_plain(value_at(claim, point)))
            return {"verdict": Verdict.REFUTED, "witness": witness, "reason": self._why(counted)}
        if measured is None:
            return {"verdict": Verdict.INCONCLUSIVE, "reason": _NOT_ONE_POLYNOMIAL}
        return {"verdict": Verdict.CONFIRMED}

    def _why(self, counted: Counted) -> str | None:
        """Return the words for a causal call that costs as much as one without a mask."""
        full = self._in_letters(self.target.backend[1].flops(causal=False, backward=self.backward))
        if self.case.is_causal and all(value_at(full, point) == value for point, value in counted):
            return "the pairs that the causal mask hides are computed too"
        return None

    def _growth(self, measured: Polynomial | None, counted: Counted) -> dict[str, Any]:
        """Judge whether the peak grows with n as predicted, by degree."""
        if measured is None:
            return {"verdict": Verdict.INCONCLUSIVE, "reason": _NOT_ONE_POLYNOMIAL}
        predicted, found = _degree(self._predicted()), measured.degree("n")
        if predicted == found:
            return {"verdict": Verdict.CONFIRMED}
        return {"verdict": Verdict.REFUTED, "reason": f"of degree {found} in n, where degree {predicted} is predicted"}

    def _predicted(self) -> sympy.Expr:
        """Return the specification's cost in the letters of the grid."""
        _, costs = self.target.backend
        cost = (
            costs.peak() if self.quantity == PEAK else costs.flops(causal=self.case.is_causal, backward=self.backward)
        )
        return self._in_letters(cost)

    def _in_letters(self, cost: sympy.Expr) -> sympy.Expr:
        case = self.case
        return sympy.factor(cost.subs({symbol(name): _number_or_letter(value) for name, value in case.known.items()}))

    def _record(self, **found: Any) -> Count:
        predicted = self._predicted()
        text = asdict(expression(predicted))
        growth = self.quantity == PEAK
        claim = Claim(kind="growth", degree=_degree(predicted), **text) if growth else Claim(kind="equal", **text)
        return Count(
            target=self.target.name,
            operation="attention",
            case=self.case.name,
            passes="forward and backward" if self.backward else "forward",
            quantity=self.quantity,
            fixed=self.case.known,
            claim=claim,
            **{"grid": _nodes(self.case.grid), **found},
        )


_SEVERAL_KERNELS = "PyTorch computes it in a fused kernel at some of these sizes and by products at others"
_NOT_ONE_POLYNOMIAL = "the counts off the grid do not lie on the polynomial through those on it"


def _nodes(grid: Grid) -> dict[str, dict[str, Any]]:
    return {axis.name: {"nodes": list(axis.nodes), "beyond": axis.beyond} for axis in grid.axes}


def _number_or_letter(value: int | str) -> Any:
    return symbol(value) if isinstance(value, str) else value


def _degree(formula: sympy.Expr) -> int:
    return int(sympy.Poly(formula, symbol("n")).degree())


def _plain(value: sympy.Expr) -> int | str:
    return int(value) if value.is_Integer else str(value)


@dataclass(frozen=True)
class Case:
    """A family of calls.

    letters: for every letter of a Shape that the grid does not vary, its value or the letter whose value it takes.
    fixed: further letters of the claim that have a value here, such as the block size T.
    """

    name: str
    grid: Grid
    letters: _Letters
    options: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, int] = field(default_factory=dict)

    def shape(self, point: Point) -> Shape:
        """Return the call at a grid point."""
        followed = {name: point[value] if isinstance(value, str) else value for name, value in self.letters.items()}
        sizes = {**point, **followed}
        return Shape(**{name: sizes[name] for name in _SIZES}, options=self.options)

    @property
    def is_causal(self) -> bool:
        """True if later keys are hidden."""
        return bool(self.options.get("is_causal"))

    @property
    def known(self) -> dict[str, int | str]:
        """Values of the letters outside the grid."""
        return {**self.letters, **self.fixed}


_BATCH, _HEADS = Axis("B", (1, 2), 3), Axis("H", (2, 4), 6)
_KEY_WIDTH, _VALUE_WIDTH = Axis("d_k", (8, 16), 24), Axis("d_v", (8, 24), 40)

# Lengths below, at and above the sizes that blocks usually have; two heads to a group once, one to a group once.
RECTANGULAR = Case(
    "all lengths",
    Grid((_BATCH, _HEADS, Axis("n_q", (5, 256, 259), 515), Axis("n_k", (7, 256, 515), 771), _KEY_WIDTH, _VALUE_WIDTH)),
    letters={"G": 2},
)


def causal(block: int) -> Case:
    """Return the case of causal self-attention, n_q = n_k = n, a multiple of the block size T."""
    length = Axis("n", (block, 2 * block, 3 * block), 5 * block)
    return Case(
        "causal",
        Grid((_BATCH, _HEADS, length, _KEY_WIDTH, _VALUE_WIDTH)),
        letters={"G": 2, "n_q": "n", "n_k": "n"},
        options={"is_causal": True},
        fixed={"T": block},
    )


# One width for all heads, as PyTorch's fused kernels want it. The length has a node more than a quadratic needs, so
# that a cubic term would be seen. A peak is a maximum of polynomials: the lengths are far above the widths and the
# usual block sizes, where one of them holds throughout.
SQUARE = Case(
    "self-attention",
    Grid((Axis("B", (1, 2), 3), Axis("H", (1, 2), 4), Axis("n", (512, 768, 1024, 1280), 1792), Axis("d", (8, 16), 24))),
    letters={"G": "H", "n_q": "n", "n_k": "n", "d_k": "d", "d_v": "d"},
    fixed={"w": 4},
)
