"""Uncountable targets: the reason is given, and the count is never zero."""

from types import SimpleNamespace

import torch

from veriformer.bench.assess import assess
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict


def counted(operation, function):
    target = Target("planted", None, None, False, SimpleNamespace(**{operation: function}))
    return next(iter(assess(target, (operation,))))


def test_what_raises_is_not_countable_with_its_reason():
    def broken(z, dim=-1):
        raise RuntimeError("no kernel")

    found = counted("softmax", broken)
    assert {one.verdict for one in found} == {Verdict.NOT_COUNTABLE}
    assert "no kernel" in found[0].reason


def test_an_operator_without_a_formula_is_not_countable():
    def product(h, weight):
        torch._int_mm(h.new_empty(32, 16, dtype=torch.int8), h.new_empty(16, 8, dtype=torch.int8))
        return h @ weight.mT

    flops = [one for one in counted("lm_head", product) if one.quantity == "FLOPs"]
    assert {one.verdict for one in flops} == {Verdict.NOT_COUNTABLE}
    assert all("_int_mm" in one.reason for one in flops)
