"""Every equation: its steps hold, false variants of them do not, its formula is right by a second route, and so on."""

import re
from dataclasses import replace

import numpy as np
import pytest

from veriformer.spec.arithmetic import Exact, Float
from veriformer.spec.equation import Scope
from veriformer.spec.proofs.prover import holds, prove, sabotaged
from veriformer.spec.proofs.tower_arithmetic import entries
from veriformer.spec.registry import equations
from veriformer.spec.unicode_text import unicode_text

STEPS = {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}
ERRATA = {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata}
SAMPLED = {e.slug: e for e in equations() if e.sample is not None}
COMPUTED = {slug: e for slug, e in SAMPLED.items() if e.formula is not None}
# Formulas of the other topics that steps hold against something at few sizes only have second routes in their tests.
TOPICS = ("veriformer.spec.attention.", "veriformer.spec.scores.")
ROUTED = {slug: e for slug, e in COMPUTED.items() if e.formula.__module__.startswith(TOPICS)}


@pytest.mark.whole
@pytest.mark.parametrize("name", STEPS)
def test_every_step_holds_and_its_sabotage_does_not(name):
    step = STEPS[name]
    sides = list(step.identity())
    step = replace(step, identity=lambda: sides)  # which takes longest: derived once, for itself and its sabotage
    verdict = prove(step, cached=False)
    assert verdict.status == ("confirmed" if step.scope is Scope.NUMERIC else "proved"), verdict.detail
    assert not [f for f in map(unicode_text, verdict.formulas) if not f or "\\" in f]
    variants = list(sabotaged(step))
    assert variants
    accepted = [v.slug for v in variants if holds(v)]
    assert accepted == []


@pytest.mark.parametrize("name", ERRATA)
def test_every_erratum_is_shown_by_its_counterexample(name):
    evidence = ERRATA[name].counterexample()
    assert evidence.refutes, str(evidence)
    assert str(evidence.claimed) != str(evidence.actual)


@pytest.mark.parametrize("slug", SAMPLED)
def test_assumptions_can_be_satisfied(slug):
    equation, rng = SAMPLED[slug], np.random.default_rng(0)
    assert equation.assumptions
    for _ in range(50):
        arguments = equation.sample(rng)
        assert all(a.holds(arguments) for a in equation.assumptions)


def taken(xp, x):
    if isinstance(x, list) and x and isinstance(x[0], np.ndarray):
        return [xp.asarray(e) for e in x]
    return xp.asarray(x) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x


def flat(result):
    return [e for part in result for e in flat(part)] if isinstance(result, (tuple, list)) else entries(result)


@pytest.mark.parametrize("slug", COMPUTED)
def test_formulas_have_finite_values_where_the_assumptions_hold(slug):
    equation, rng, xp = COMPUTED[slug], np.random.default_rng(1), Float()
    for _ in range(20):
        arguments = {name: taken(xp, x) for name, x in equation.sample(rng).items()}
        values = flat([x for x in [equation.formula(xp, **arguments)] if x is not None])
        assert values
        assert np.isfinite(np.array([v for v in values if v is not None], dtype=np.float64)).all()


def softmax_route(c, a):
    return [c.exp(x) / c.fsum(map(c.exp, row)) for row in rows(a["z"]) for x in row]


def rows(x):
    return np.reshape(x, (-1, x.shape[-1]))


def cross_entropy_route(c, a):
    per_row = [
        -c.fsum(y * c.log(c.exp(z) / c.fsum(map(c.exp, row))) for y, z in zip(t, row, strict=True))
        for row, t in zip(rows(a["logits"]), rows(a["target"]), strict=True)
    ]
    return [c.fsum(per_row) / len(per_row)]


def perplexity_route(c, a):
    product = c.mpf(1)
    for row, k in zip(rows(a["logits"]), a["target"].ravel(), strict=True):
        product *= c.exp(row[k]) / c.fsum(map(c.exp, row))
    return [product ** (-c.mpf(1) / a["target"].size)]


def logsumexp_route(c, a):
    return [c.log(c.fsum(map(c.exp, row))) for row in rows(a["z"])]


def dot(c, x, y):
    return c.fsum(c.mpf(s) * c.mpf(t) for s, t in zip(x, y, strict=True))


def attend(c, q, k, v):
    e = [c.exp(dot(c, q, key) / c.sqrt(len(q))) for key in k]
    return [dot(c, e, column) / c.fsum(e) for column in v.T]


def attention_route(c, a):
    batch, heads, n_q, _ = a["q"].shape
    share = heads // a["k"].shape[1]
    places = ((b, h, i) for b in range(batch) for h in range(heads) for i in range(n_q))
    return [o for b, h, i in places for o in attend(c, a["q"][b, h, i], a["k"][b, h // share], a["v"][b, h // share])]


def attention_loss(c, a):
    return dot(c, attention_route(c, a), a["g"].ravel())


def attention_gradient_route(c, a):
    """Central differences: with h = 2^-70 the error is about 2^-140, far below what rounding to fp64 shows."""
    h = c.ldexp(1, -70)
    out = []
    for name in ("q", "k", "v"):
        for index in np.ndindex(a[name].shape):
            sides = []
            for sign in (1, -1):
                moved = np.array(a[name].astype(object))
                moved[index] = c.mpf(a[name][index]) + sign * h
                sides.append(attention_loss(c, {**a, name: moved}))
            out.append((sides[0] - sides[1]) / (2 * h))
    return out


def masked_route(c, a):
    out = []
    for row, see in zip(a["s"], a["see"], strict=True):
        total = c.fsum(c.exp(x) for x, v in zip(row, see, strict=True) if v)
        out += [c.exp(x) / total if v else c.mpf(0) for x, v in zip(row, see, strict=True)]
    return out


def online_route(c, a):
    return [dot(c, list(map(c.exp, row)), column) / c.fsum(map(c.exp, row)) for row in a["s"] for column in a["v"].T]


ROUTES = {
    "softmax": softmax_route,
    "softmax-jacobian": softmax_route,
    "attention-weights": softmax_route,
    "cross-entropy": cross_entropy_route,
    "perplexity": perplexity_route,
    "logsumexp": logsumexp_route,
    "similarity": lambda c, a: [dot(c, q, k) for q in a["q"] for k in a["k"]],
    "weighted-values": lambda c, a: [dot(c, w, column) for w in a["weights"] for column in a["v"].T],
    "attention": attention_route,
    "attention-gradients": attention_gradient_route,
    "masked-attention": masked_route,
    "score-variance": lambda c, a: [c.mpf(a["d_k"]) * c.mpf(a["sigma"]) ** 2 * c.mpf(a["tau"]) ** 2],
    "online-softmax": online_route,
}


def test_every_formula_has_a_second_route():
    assert set(ROUTES) == set(ROUTED)


@pytest.mark.parametrize("slug", ROUTED)
def test_formula_by_two_routes(slug):
    # Both routes carry 300 bits, so that they agree when both are rounded to fp64.
    equation, xp = ROUTED[slug], Exact(300)
    rng = np.random.default_rng(7)
    for _ in range(1 if slug == "attention-gradients" else 5):
        arguments = equation.sample(rng)
        if slug == "attention-gradients":
            arguments = {
                name: x[:1, :2, :2, :2] if name in "qg" else x[:1, :1, :2, :2] for name, x in arguments.items()
            }
        ours = equation.formula(xp, **{name: taken(xp, x) for name, x in arguments.items()})
        ours = [float(e) for e in flat([x for x in (ours if isinstance(ours, tuple) else [ours]) if x is not None])]
        assert ours == [float(e) for e in ROUTES[slug](xp.context, arguments)]


def formulas_in(text):
    return re.findall(r"\$(.+?)\$", text)


@pytest.mark.parametrize("equation", equations(), ids=lambda e: e.slug)
def test_latex_becomes_mathml(equation):
    from latex2mathml.converter import convert

    latex = [equation.statement, *(x for s in equation.symbols for x in (s.name, s.space))]
    latex += [x for e in equation.errata for x in (e.printed, e.corrected)]
    for step in equation.steps:
        assert step.claim.count("$") % 2 == 0
        latex += formulas_in(step.claim)
    for formula in latex:
        assert "\\" not in convert(formula), formula


def test_slugs_and_numbers_are_unique():
    assert len({e.slug for e in equations()}) == len(equations())
    numbers = [e.number for e in equations() if e.number]
    assert len(set(numbers)) == len(numbers)
    for equation in equations():
        assert len({s.slug for s in equation.steps}) == len(equation.steps)


def test_the_foundation_is_there():
    numbers = {e.number for e in equations()}
    assert {"1", "2", "11", "12", "19", "20", "21", "22", "23", "24a", "24b", "25", "41"} <= numbers
    assert {"attention-gradients", "rms-norm", "online-softmax"} <= {e.slug for e in equations()}


@pytest.mark.parametrize("equation", equations(), ids=lambda e: e.slug)
def test_costs_are_expressions(equation):
    for name, cost in equation.costs.items():
        assert cost().is_number or cost().free_symbols, name
