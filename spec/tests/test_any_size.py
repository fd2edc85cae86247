"""Arrays of any size against NumPy's, and what is said to be proved for all n against what a step really runs."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import sympy as sp

from veriformer.spec.arithmetic import Symbolic, any_size
from veriformer.spec.arithmetic.any_size import AnySize, as_indices, counting, everywhere
from veriformer.spec.arithmetic.indicators import AtLeastZero, Block, Place, Shown, Some, Within, chosen, summed
from veriformer.spec.equation import Scope, Step
from veriformer.spec.formula_reach import formula_reach, functions
from veriformer.spec.layers.activations import relu
from veriformer.spec.proofs.algebra import is_identically_zero
from veriformer.spec.proofs.any_length import AnyLength, entry, mask
from veriformer.spec.proofs.counterexample import numeric_counterexample
from veriformer.spec.proofs.indexed import dimension, index, real, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.prover import Verdict, prove
from veriformer.spec.registry import equations
from veriformer.spec.scores.cross_entropy import cross_entropy
from veriformer.spec.scores.softmax import softmax

NUMBERED = [e for e in equations() if e.number]
MOVES = {
    "swapaxes": lambda p: np.swapaxes(p, 0, 1),
    "split": lambda p: np.reshape(p, (2, 3, 2)),
    "split in three": lambda p: np.reshape(p, (2, 1, 3, 2, 1)),
    "merge": lambda p: np.reshape(p, (12,)),
    "flat": lambda p: np.reshape(p, (-1,)),
    "regroup": lambda p: np.reshape(p, (3, 4)),
    "regroup beside others": lambda p: np.reshape(p[:, None] + 0 * p[..., None], (3, 4, 6)),
    "ravel": lambda p: p.ravel(),
    "repeat": lambda p: np.repeat(p, 3, axis=1),
    "concatenate": lambda p: np.concatenate([p, p * 2, p], axis=1),
    "stack": lambda p: np.stack([p, p * 2], axis=-1),
    "even": lambda p: p[:, 0::2],
    "odd": lambda p: p[..., 1::2],
    "first": lambda p: p[:, :4],
    "last": lambda p: p[:, 4:],
    "new axis": lambda p: p[:, None],
    "broadcast": lambda p: np.broadcast_to(p[..., None], (2, 6, 4)),
    "rows": lambda p: p[as_like(p, np.array([[1, 0, 1]]))],
    "where": lambda p: np.where(p > 5, p, p + 100),
    "not where": lambda p: np.where(~((p <= 7) & (p != 3)), p, 0),
    "merge of a stack": lambda p: np.reshape(np.stack([p, p * 2], axis=-1), (2, 12))[:, :12],
}


def as_any_size(x):
    return AnySize(x.shape, lambda *at: sp.Integer(int(x[tuple(int(i) - 1 for i in at)])), x.dtype)


def as_like(p, x):
    return x if isinstance(p, np.ndarray) else as_any_size(x)


@pytest.mark.parametrize("name", MOVES)
def test_moves_are_those_of_numpy(name):
    x = np.arange(12).reshape(2, 6)
    expected, found = MOVES[name](x), MOVES[name](as_any_size(x))
    assert tuple(found.shape) == expected.shape
    for at in product(*map(range, expected.shape)):
        assert int(found.entry(*(sp.Integer(i + 1) for i in at))) == int(expected[at])


def test_what_is_known_stays_with_numpy():
    assert counting(3).tolist() == [0, 1, 2]
    assert everywhere(1, 2).tolist() == [[True, True]]
    assert as_indices([4]).tolist() == [4]
    assert any_size.largest(np.int64(0), 1) == 1
    assert isinstance(any_size.largest(np.int64(0), 1), int)


@pytest.mark.parametrize("shape", [(4, 4), (2, 2, 2)])
def test_what_cannot_be_read_is_refused(shape):
    with pytest.raises(NotImplementedError):
        np.reshape(as_any_size(np.zeros((2, 6), dtype=int)), shape)


REFUSED = {
    "a function of no formula": lambda p: np.cumsum(p),
    "one number as an index": lambda p: p[0],
    "steps from beyond the first": lambda p: p[:, 2::2],
    "steps to an end": lambda p: p[:, 0:4:2],
    "known numbers beside it": lambda p: np.where(p > 1, p, np.zeros((2, 6))),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_formula_needs_is_refused(name):
    with pytest.raises(NotImplementedError):
        REFUSED[name](as_any_size(np.zeros((2, 6), dtype=int)))


def test_sizes_that_do_not_fit_are_refused():
    x = as_any_size(np.zeros((2, 6), dtype=int))
    with pytest.raises(ValueError, match="one size for each axis"):
        x + as_any_size(np.zeros((2, 5), dtype=int))
    with pytest.raises(ValueError, match="can be broadcast to"):
        np.broadcast_to(x, (6,))


def test_the_arithmetic_refuses_what_depends_on_known_sizes():
    xp, n, m = AnyLength(), dimension("n"), dimension("m")
    x = xp.array("x", n, m)
    for refused in (
        lambda: xp.asarray([1, 2]),
        lambda: x + np.zeros(2),
        lambda: xp.where(np.array([True, False]), x, 0),
        lambda: xp.cumsum(x),
    ):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(ValueError, match="matmul"):
        xp.matmul(x, x)
    with pytest.raises(ValueError, match="2 axes"):
        entry(1, 1)(xp.array("x", n))


def test_floats_are_the_rational_numbers_that_they_are():
    xp = AnyLength()
    assert xp.asarray(0.25).value.entry() == sp.Rational(1, 4)
    assert (xp.array("x", dimension("n")) * 0.5).value.entry(1) == vector("x")[1] / 2
    assert xp.asarray(-np.inf).value.entry() == -sp.oo


def test_truth_values_choose_and_maxima_are_free_numbers():
    xp, n, i = AnyLength(), dimension("n"), index("i")
    x, y = xp.array("x", n), xp.array("y", n)
    assert entry(i)(xp.where(True, x, y)) == vector("x")[i]
    assert entry(i)(xp.where(False, x, y)) == vector("y")[i]
    assert entry()(xp.max(x)) != entry()(xp.max(x))
    assert entry()(xp.max(abs(x))).is_positive
    assert not entry()(xp.max(x)).is_positive


def test_blocks_of_blocks_are_taken_apart_as_numbers_are():
    g, t, r, n = 2, 5, 3, 2  # entry 5 of block 2 of 3 · 2 entries each
    c = Place(*map(sp.Integer, (g, t, r * n)))
    letters = {name: dimension(name) for name in "gtrn"}
    place = Place(letters["g"], letters["t"], letters["r"] * letters["n"])
    values = {letters[name]: value for name, value in zip("gtrn", (g, t, r, n), strict=True)}
    for function in (Block, Within):
        found = function(place, letters["n"])
        assert not found.has(function) or found.args != (place, letters["n"])
        assert found.subs(values) == function(c, sp.Integer(n))
    assert Block(place, letters["t"]).args == (place, letters["t"])


def test_axes_that_are_put_together_are_summed_part_by_part():
    x, y, (i, e), (h, d, m, n) = vector("x"), vector("y"), index("i e"), map(dimension, "hdmn")
    blocks = summed(x[Block(i, d), Within(i, d)] * y[i], i, h * d)
    printed = sum_over(h, lambda k: sum_over(d, lambda e: x[k, e] * y[Place(k, e, d)]))
    assert numeric_counterexample(blocks, printed) is None
    assert is_identically_zero(blocks - printed)
    assert numeric_counterexample(blocks, summed(x[Within(i, d), Block(i, d)] * y[i], i, h * d)) is not None
    joint = summed(AtLeastZero(m - i) * x[i] + (1 - AtLeastZero(m - i)) * y[i - m], i, m + n)
    assert is_identically_zero(joint - sum_over(m, lambda k: x[k]) - sum_over(n, lambda k: y[k]))
    assert Block(Place(i, e, d), d) == i
    assert Block(Place(i, e, d), h) != i


def test_comparisons_in_sums_are_decided_only_where_they_come_out_alike():
    x, (i, k), n = vector("x"), (dimension("i"), index("k")), dimension("n")
    always = sp.Sum(AtLeastZero(n + i - k) * x[k], (k, 1, n))
    assert is_identically_zero(always - sum_over(n, lambda j: x[j]))
    sometimes = sp.Sum(AtLeastZero(i - k) * x[k], (k, 1, n))
    assert not is_identically_zero(sometimes - sum_over(n, lambda j: x[j]))


def test_a_choice_counts_only_where_its_mask_does():
    i, j = index("i j")
    b, x, y = Shown(vector("b"), i, j), *sp.symbols("x y", real=True)
    some = Some(sp.Sum(Shown(vector("b"), i, index("k")), (index("k"), 1, dimension("n"))))
    assert chosen(b, b * x + 1, b * y) == b * (x + 1)
    assert chosen(b, some * x, 0) == b * x
    assert chosen(some, b * x, 0) == some * b * x
    assert chosen(sp.S.One, x, -sp.oo) == x


def test_powers_of_a_letter_are_the_hypothesis_and_all_others_are_squared():
    xp, beta, k = AnyLength(), sp.Symbol("beta", positive=True), dimension("k")
    for n in (1, 2, 7, k, 2 * k, 2 * k + 1):
        assert is_identically_zero(xp.power(xp.asarray(beta), n).value.entry() - beta**n)


def test_masks_have_entries():
    assert mask("b", dimension("n")).entry(1) == Shown(vector("b"), 1)


UNKNOWN = Verdict("unproved", 0.0, "")


def verdicts_of(equation):
    """Verdicts of the steps that claim to run the formula for all n; of all others nothing is known."""
    named = [s for s in equation.steps if s.scope is Scope.ALL and stated_by(equation) in functions(s)]
    return {(equation.slug, s.slug): prove(s, cached=False) if s in named else UNKNOWN for s in equation.steps}


def stated_by(equation):
    return equation.vjp if equation.vjp and r"\partial" in equation.statement else equation.formula


@pytest.mark.whole
@pytest.mark.parametrize("equation", NUMBERED, ids=lambda e: e.slug)
def test_numbered_formulas_are_held_against_their_statements_for_all_n(equation):
    assert formula_reach(equation, verdicts_of(equation)) is Scope.ALL


def made_up(slug, scope, *pairs):
    return Step(slug=slug, claim="", scope=scope, identity=lambda: [pair() for pair in pairs])


def at_letters():
    xp = AnyLength()
    return computed(relu, xp, xp.array("x", dimension("n"))).then(entry(index("i")))


def reach(*steps, formula=relu):
    equation = replace(NUMBERED[0], steps=steps, formula=formula)
    return formula_reach(equation, {(equation.slug, s.slug): prove(s, cached=False) for s in steps})


def step_of(number, slug):
    (equation,) = (e for e in NUMBERED if e.number == number)
    return next(s for s in equation.steps if s.slug == slug)


def test_a_formula_reaches_as_far_as_what_is_held_against_it():
    few, every = step_of("1", "stable-form"), step_of("1", "any-length")
    assert reach() is None
    assert reach(step_of("2", "printed"), formula=cross_entropy) is Scope.NUMERIC
    assert reach(few, formula=softmax) is Scope.ENUMERATED
    assert reach(replace(few, scope=Scope.ALL), formula=softmax) is Scope.ENUMERATED
    assert reach(few, every, formula=softmax) is Scope.ALL
    assert reach(few, replace(every, scope=Scope.ENUMERATED), formula=softmax) is Scope.ENUMERATED
    assert reach(made_up("every", Scope.ALL, lambda: (at_letters(), sp.Max(vector("x")[index("i")], 0)))) is Scope.ALL


def test_what_does_not_hold_or_holds_of_something_else_reaches_nowhere():
    x, y = vector("x")[index("i")], vector("y")[index("i")]
    wrong = made_up("wrong", Scope.ALL, lambda: (at_letters(), sp.Max(x, 1)))
    both_sides = made_up(
        "both",
        Scope.ALL,
        lambda: (at_letters().then(lambda e: e * (x + y)), at_letters().then(lambda e: e * x + e * y)),
    )
    one_number = made_up("number", Scope.ALL, lambda: (computed(relu, Symbolic(), real("x")), sp.Max(real("x"), 0)))
    named_only = made_up("named", Scope.ALL, lambda: (at_letters() and x * (x + y), x**2 + x * y))
    assert reach(wrong) is None
    assert reach(both_sides) is None
    assert reach(one_number) is None
    assert reach(named_only) is None
