"""Where the sides of identities come from: what is a restatement, and what is not though both sides are one."""

import numpy as np
import pytest
import sympy as sp

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.equation import Step
from veriformer.spec.layers.activations import relu
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.provenance import Computed, computed, flat, restated
from veriformer.spec.proofs.prover import prove, sabotaged
from veriformer.spec.proofs.published import holds, rounds_to

X = sp.Symbol("x", positive=True)
XP = Symbolic()


def status(*pairs):
    return prove(Step(slug="made-up", claim="", identity=lambda: pairs), cached=False).status


def test_what_nobody_computed_is_a_restatement_however_it_is_written():
    assert status((X + X, 2 * X)) == "vacuous"
    assert status((sp.Max(X, 0), X)) == "vacuous"
    assert status((sp.Rational(1, 2), sp.Rational("0.5"))) == "vacuous"


def test_what_a_formula_computed_is_none():
    y = computed(relu, XP, XP.asarray(X))
    assert y.value == X
    assert status((y, X)) == "proved"
    assert status((X, y)) == "proved"


def test_two_values_of_one_function_are_none_if_it_was_asked_two_things():
    once, again = (computed(relu, XP, XP.asarray([X, -X])) for _ in range(2))
    other = computed(relu, XP, XP.asarray([-X, X])).then(lambda y: y[::-1])
    assert status(*entrywise(once, again)) == "vacuous"
    assert status(*entrywise(once, other)) == "proved"
    slope = computed(sp.diff, X**2 / 2, X)
    assert not restated(slope, Computed(X, "another"))


def test_a_restatement_among_others_is_counted():
    verdict = prove(Step(slug="made-up", claim="", identity=lambda: [(X, X), (X * (X + 1), X**2 + X)]), cached=False)
    assert verdict.status == "proved"
    assert verdict.detail == "2 identities, 1 of them a restatement"


@pytest.mark.parametrize("function", [lambda x: x, sp.Integer, int])
def test_what_has_no_name_or_only_builds_is_no_origin(function):
    with pytest.raises(TypeError, match="function"):
        computed(function, 1)


def test_a_number_that_is_printed_to_begin_with_was_not_rounded():
    assert restated(*rounds_to(sp.Rational("0.5"), "0.5"))
    assert not restated(*rounds_to(sp.Rational("0.52"), "0.5"))
    assert not restated(*rounds_to(computed(sp.diff, X / 2, X), "0.5"))
    assert rounds_to(sp.Rational("0.56"), "0.5")[0].value == sp.Rational("0.6")


def test_a_comparison_is_judged_and_false_ones_are_refuted():
    assert status(holds(1 < 2)) == "proved"
    assert status(holds(2 < 1)) == "refuted"


def test_entries_keep_where_they_come_from():
    y = computed(relu, XP, XP.asarray([[X, 0]]))
    assert [e.origin for e, _ in entrywise(y, [X, 0])] == [y.origin] * 2
    assert y.entry(0, 0).value == X
    assert y.each(lambda e: 2 * e).value == [2 * X, 0]
    assert flat(np.array([[1, 2]])) == [1, 2]


def test_sabotage_sees_through_origins():
    made_up = Step(slug="made-up", claim="", identity=lambda: [(computed(relu, XP, XP.asarray(X)), X)])
    variants = list(sabotaged(made_up))
    assert len(variants) == 3
    assert not any(prove(v, cached=False).holds for v in variants)


def test_identities_are_written_down():
    verdict = prove(Step(slug="made-up", claim="", identity=lambda: [(X * (X + 1), X**2 + X)]), cached=False)
    assert verdict.identities == ("x*(x + 1) = x**2 + x",)
