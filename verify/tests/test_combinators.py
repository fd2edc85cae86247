"""Faults are functions from right operations to wrong ones, and two of them can be had together."""

from __future__ import annotations

import torch

from veriformer.verify.mutants.combinators import both, faulty, replace_by, without
from veriformer.verify.mutants.faults import FAULTS
from veriformer.verify.targets.impl import reference as right

X = torch.tensor([[0.5, -0.25, 2.0], [0.0, 1.0, -3.0]])
Q = torch.tensor([[[[1.0, 2.0], [-1.0, 0.5]]]])


def test_every_option_has_a_value_behind_the_checks_of_the_contract():
    seen = {}

    def fault(op):
        return lambda *args, **options: seen.update(options) or op(*args, **options)

    faulty("attention", fault)(Q, Q, Q)
    assert seen["scale"] is None
    assert seen["is_causal"] is False


def test_what_is_refused_is_refused_before_the_fault():
    called = []
    operation = faulty("attention", lambda op: lambda *args, **options: called.append(1))
    try:
        operation(Q, Q, Q, window=2)
    except ValueError:
        assert not called
    else:
        raise AssertionError("a window without causality was taken")


def test_two_combinators_are_one_around_the_other():
    fault = both(without("scale"), without("softcap"))
    options = {"scale": 3.0, "softcap": 0.5}
    assert torch.equal(faulty("attention", fault)(Q, Q, Q, **options), right.attention(Q, Q, Q))


def test_of_two_computations_by_a_formula_both_edits_are_made():
    one, two = FAULTS["LN-01"]["layer_norm"], FAULTS["LN-02"]["layer_norm"]
    expected = (X - X.mean(-1, keepdim=True)) / (X.std(-1, keepdim=True) + 0.5)
    for fault in (both(one, two), both(two, one)):
        assert torch.equal(faulty("layer_norm", fault)(X, eps=0.5).round(decimals=6), expected.round(decimals=6))


def test_two_faults_in_one_place_are_not_had_together():
    assert both(FAULTS["LN-01"]["layer_norm"], FAULTS["LN-04"]["layer_norm"]) is None
    assert both(FAULTS["LN-01"]["layer_norm"], replace_by(right.layer_norm)) is None


def test_a_combinator_goes_around_another_computation():
    stage, gradient = FAULTS["LN-01"]["layer_norm"], FAULTS["MLP-01"]["layer_norm"]
    for fault in (both(stage, gradient), both(gradient, stage)):
        bias = torch.zeros(3, requires_grad=True)
        y = faulty("layer_norm", fault)(X, None, bias)
        assert torch.equal(y, faulty("layer_norm", stage)(X))
        y.backward(torch.ones_like(y))
        assert bias.grad.tolist() == [6.0, 6.0, 6.0]
