"""Every equation: its steps hold, false variants do not, its formula is finite where it is assumed, and so on."""

import re
from dataclasses import replace

import numpy as np
import pytest

from veriformer.spec.arithmetic import Float
from veriformer.spec.equation import Scope
from veriformer.spec.proofs.prover import holds, prove, sabotaged
from veriformer.spec.proofs.tower_arithmetic import entries
from veriformer.spec.registry import equations
from veriformer.spec.unicode_text import unicode_text

STEPS = {f"{e.slug}:{s.slug}": s for e in equations() for s in e.steps}
ERRATA = {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata}
SAMPLED = {e.slug: e for e in equations() if e.sample is not None}
COMPUTED = {slug: e for slug, e in SAMPLED.items() if e.formula is not None}


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
