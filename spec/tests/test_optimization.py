"""Optimizers, schedules and matrix calculus at their edges, some by a second route, and what is claimed of them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import sympy as sp
import torch
from torch import nn

from tests.values import EXACT, XP, flat
from veriformer.spec.arithmetic import Exact
from veriformer.spec.optimization import warmup_cosine as cosine
from veriformer.spec.optimization.accumulate_gradients import accumulate_gradients
from veriformer.spec.optimization.adam import Moments, adam, adam_start
from veriformer.spec.optimization.adam_step_size import adam_step_bound
from veriformer.spec.optimization.adamw import adamw
from veriformer.spec.optimization.averages import corrected_average
from veriformer.spec.optimization.beta2_warmup import warming_average
from veriformer.spec.optimization.descent_example import descend_parabola
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.optimization.matrix_calculus import (
    kronecker,
    vec,
    vec_of_product,
)
from veriformer.spec.optimization.noam import noam
from veriformer.spec.optimization.sgd_momentum import MomentumState, sgd_momentum, sgd_momentum_start
from veriformer.spec.optimization.warmup import warmup
from veriformer.spec.optimization.warmup_cosine import warmup_cosine
from veriformer.spec.proofs.published import holds, rounds_to
from veriformer.spec.registry import equations

C = EXACT.context
RNG = np.random.default_rng(0)
OURS = {e.slug: e for e in equations() if e.steps[0].identity.__module__.startswith("veriformer.spec.optimization.")}


def exact(x):
    return np.frompyfunc(C.mpf, 1, 1)(np.asarray(x, dtype=object))


# Second routes: closed forms, or the printed formula in mpmath over NumPy arrays.


def average_route(a):
    beta, t = C.mpf(a["beta"]), len(a["values"])
    weights = [C.power(beta, t - i) for i in range(1, t + 1)]
    return sum(w * exact(x) for w, x in zip(weights, a["values"], strict=True)) / C.fsum(weights)


def warming_route(a):
    betas, t = [C.mpf(b) for b in a["betas"]], len(a["betas"])
    weights = [(1 - betas[i]) * C.fprod(betas[i + 1 :]) for i in range(t)]
    return sum(w * exact(x) for w, x in zip(weights, a["values"], strict=True)) / C.fsum(weights)


def cosine_route(a):
    t, warm, end, top = a["step"], a["warmup_steps"], a["total_steps"], C.mpf(a["max_lr"])
    if t < warm:
        return [top * t / warm]
    return [top * C.cos(C.pi * (t - warm) / (end - warm) / 2) ** 2 if t < end else C.mpf(0)]


def bound_route(a):
    b1, b2, t = *map(C.mpf, a["betas"]), a["t"]
    r = b1**2 / b2
    geometric = (1 - C.power(r, t)) / (1 - r)
    corrections = C.sqrt(1 - C.power(b2, t)) / (1 - C.power(b1, t))
    return [C.mpf(a["lr"]) * corrections * (1 - b1) / C.sqrt(1 - b2) * C.sqrt(geometric)]


def accumulation_route(a):
    n = max(sum(a["counts"]), 1)
    return [sum(exact(part[i]) for part in a["sums"]) / n for i in range(2)]


# Of the formulas that steps hold against something at few sizes only.
ROUTES = {
    "descent-example": lambda a: (1 - 2 * C.mpf(a["lr"])) ** a["steps"] * C.mpf(a["x"]),
    "exponential-average": average_route,
    "adam-step-size": bound_route,
    "beta2-warmup": warming_route,
    "warmup-cosine": cosine_route,
    "gradient-accumulation": accumulation_route,
    "clipping-example": lambda a: [C.mpf(a["max_norm"]) / max(C.mpf(a["norm"]), C.mpf(a["max_norm"]))],
}


def lifted(x):
    if isinstance(x, np.ndarray):
        return EXACT.asarray(x)
    return list(map(lifted, x)) if isinstance(x, list) else x


@pytest.mark.parametrize("slug", ROUTES)
def test_formula_by_two_routes(slug):
    equation, rng = OURS[slug], np.random.default_rng(3)
    for _ in range(8):
        arguments = equation.sample(rng)
        ours = equation.formula(EXACT, **{name: lifted(x) for name, x in arguments.items()})
        theirs = ROUTES[slug](arguments)
        assert flat(ours) == flat(theirs if isinstance(theirs, list) else [theirs])


# Optimizers as they run: from their start, over several steps, with gaps.


def runs(optimizer, start, gradients, **options):
    states = start(EXACT, [EXACT.asarray(x) for x in (np.ones((2, 2)), np.zeros(3))])
    for grads in gradients:
        states = optimizer(EXACT, states, grads, **options)
    return states


OPTIMIZERS = {
    "sgd_momentum": (sgd_momentum, sgd_momentum_start, {"lr": 0.5}),
    "adam": (adam, adam_start, {"lr": 0.5}),
    "adam_l2": (adam, adam_start, {"lr": 0.5, "weight_decay": 0.25}),
    "adamw": (adamw, adam_start, {"lr": 0.5}),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_parameter_without_gradient_stands_still(name):
    optimizer, start, options = OPTIMIZERS[name]
    gradients = [[RNG.normal(size=(2, 2)), RNG.normal(size=3)] for _ in range(3)]
    gaps = [gradients[0], [None, gradients[1][1]], gradients[2]]
    skipped, rest = runs(optimizer, start, gaps, **options)
    assert flat(skipped) == flat(runs(optimizer, start, [gradients[0], gradients[2]], **options)[0])
    assert flat(rest) == flat(runs(optimizer, start, gradients, **options)[1])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_changes_no_argument(name):
    optimizer, start, options = OPTIMIZERS[name]
    states = start(XP, [XP.asarray(RNG.normal(size=4))])
    g = RNG.normal(size=4)
    before, kept = flat(states), g.copy()
    after = optimizer(XP, states, [g], **options)
    assert flat(states) == before
    assert (g == kept).all()
    assert flat(after) != before


def test_momentum_starts_at_zero_and_is_damped():
    g = np.array([2.0, -4.0])
    (s,) = sgd_momentum(XP, sgd_momentum_start(XP, [XP.asarray(np.zeros(2))]), [g], lr=1.0, beta=0.75)
    assert flat(s.v) == [0.5, -1.0]
    assert flat(s.theta) == [-0.5, 1.0]
    (undamped,) = sgd_momentum(XP, [MomentumState(np.zeros(2), g)], [g], lr=1.0, beta=0.75)
    assert flat(undamped.v) == [2.0, -4.0]


def test_gradient_descent_leaves_parameters_without_gradient():
    kept, moved = gradient_descent(XP, [np.ones(2), np.ones(2)], [None, np.ones(2)], lr=0.5)
    assert kept.tolist() == [1, 1]
    assert flat(moved) == [0.5, 0.5]
    with pytest.raises(ValueError, match="zip"):
        gradient_descent(XP, [np.ones(2)], [], lr=0.5)


@pytest.mark.parametrize("size", [1e-150, 1e-3, 1.0, 1e150])
def test_adams_first_step_has_the_length_of_the_rate(size):
    (s,) = adam(EXACT, adam_start(EXACT, [EXACT.asarray([0.0, 0.0])]), [np.array([size, -size])], lr=0.125, eps=0)
    assert flat(s.theta) == [-0.125, 0.125]
    assert s.t == 1


def test_zero_gradients_move_nothing_and_adamw_decays():
    start = [Moments(np.ones(2), np.zeros(2), np.zeros(2), 0)]
    (still,) = adam(XP, start, [np.zeros(2)], lr=0.5)
    (decayed,) = adamw(XP, start, [np.zeros(2)], lr=0.5, weight_decay=0.5)
    assert flat(still.theta) == [1, 1]
    assert flat(decayed.theta) == [0.75, 0.75]


def test_no_sequence_of_gradients_beats_the_bound():
    for trial in range(30):
        states, t = adam_start(XP, [XP.asarray([0.0])]), 0
        for growth in np.cumsum(RNG.normal(size=12)) * trial / 10:
            (before,), t = states, t + 1
            states = adam(XP, states, [np.array([np.exp(growth) * RNG.choice([-1, 1])])], lr=1.0, eps=0)
            step = abs(flat(states[0].theta)[0] - flat(before.theta)[0])
            assert step <= flat(adam_step_bound(XP, t, lr=1.0))[0] * (1 + 2.0**-40)


def test_averages_with_one_beta_are_a_special_case():
    values = EXACT.asarray(RNG.normal(size=(5, 2)))
    assert flat(warming_average(EXACT, values, [0.9] * 5)) == flat(corrected_average(EXACT, values, 0.9))
    assert flat(corrected_average(EXACT, EXACT.asarray(np.full((7, 1), 3.0)), 0.999)) == [3.0]
    assert flat(corrected_average(EXACT, values, 0)) == flat(values[-1])


# Schedules.


def rates(schedule, steps, **options):
    return [flat(schedule(EXACT, t, **options))[0] for t in steps]


def test_warmup_at_its_edges():
    assert rates(warmup, range(6), max_lr=2.0, warmup_steps=4) == [0, 0.5, 1, 1.5, 2, 2]
    assert rates(warmup, [0, 1], max_lr=2.0, warmup_steps=0) == [2, 2]


def test_warmup_cosine_at_its_edges():
    shape = {"max_lr": 2.0, "warmup_steps": 2, "total_steps": 6}
    assert rates(warmup_cosine, [0, 1, 2, 4, 6, 7, 100], **shape) == [0, 1, 2, 1, 0, 0, 0]
    assert rates(warmup_cosine, [0, 1, 2, 3], max_lr=2.0, warmup_steps=2, total_steps=2) == [0, 1, 0, 0]
    assert rates(warmup_cosine, [0, 1], max_lr=2.0, warmup_steps=0, total_steps=1) == [2, 0]
    falling = rates(warmup_cosine, range(2, 7), **shape)
    assert falling == sorted(falling, reverse=True)


def test_noam_peaks_at_the_end_of_the_warmup():
    curve = rates(noam, range(1, 20), d_model=16, warmup_steps=4)
    assert max(curve) == curve[3] == 0.125
    assert rates(noam, [1, 4], d_model=4, warmup_steps=1) == [0.5, 0.25]


def test_pi_to_a_thousand_bits():
    wide = Exact(1020).context
    assert abs(wide.mpf(cosine._PI.numerator) / cosine._PI.denominator - wide.pi) < wide.ldexp(1, -1015)


# Accumulation.


def test_accumulation_over_every_ragged_split():
    tokens = RNG.normal(size=(5, 3))
    whole = [float(x) for x in exact(tokens).sum(axis=0) / 5]
    for cuts in product((False, True), repeat=4):
        parts = np.split(exact(tokens), [i + 1 for i in range(4) if cuts[i]])
        sums = [[EXACT.asarray(part.sum(axis=0))] for part in parts]
        assert flat(accumulate_gradients(EXACT, sums, [len(part) for part in parts])[0]) == whole


def test_accumulation_over_no_token_is_zero():
    (g,) = accumulate_gradients(XP, [[np.zeros(3)], [np.zeros(3)]], [0, 0])
    assert flat(g) == [0, 0, 0]


# Matrix calculus.


def test_vec_and_kronecker_are_those_of_numpy():
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2))
    assert flat(vec(XP, XP.asarray(a))) == a.ravel(order="F").tolist()
    assert flat(kronecker(XP, XP.asarray(a), XP.asarray(b))) == np.kron(a, b).ravel().tolist()
    x = np.eye(3)
    assert vec_of_product(XP, XP.asarray(a), XP.asarray(x), XP.asarray(np.ones((3, 1)))).shape == (2,)


# What the documents say.


def test_numbers_three_to_eleven_are_here():
    assert {e.number for e in OURS.values() if e.number} == {str(n) for n in range(3, 12)}


def test_the_tenth_iteration_is_neither_printed_number():
    x = [float(descend_parabola(EXACT, EXACT.asarray(3), lr=Fraction(1, 10), steps=k).value[()]) for k in (9, 10, 11)]
    assert [round(e, 2) for e in x] == [0.40, 0.32, 0.26]


def test_printed_numbers_are_compared_by_rounding():
    ours, printed = rounds_to(sp.Rational(1536, 1000), "1.54")
    assert ours.value == printed
    ours, printed = rounds_to(sp.Rational(1536, 1000), "1.53")
    assert ours.value != printed
    assert holds(2 < 1)[0].value != holds(2 < 1)[1]


def gradient_norms(eps):
    """The ten norms of document 004, section 3.4, in double precision, for a LayerNorm with this ε."""
    torch.manual_seed(0)
    x = torch.randn(1, 10, 16, requires_grad=True)
    blocks = [
        (nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)), nn.LayerNorm(16, eps=eps)) for _ in range(6)
    ]
    out = x.double()
    for fc, norm in blocks:
        out = norm.double()(out + fc.double()(out))
    out.pow(2).mean().backward()
    return np.array([float(p.grad.norm()) for fc, norm in blocks for p in (*fc.parameters(), *norm.parameters())][:10])


def test_the_printed_gradient_norms_measure_epsilon():
    usual, tenth, none = (gradient_norms(eps) for eps in (1e-5, 1e-6, 0.0))
    assert (usual < 1e-5).all()
    assert (np.abs(usual / tenth - 10) < 0.01).all()
    assert (none < 1e-14).all()
