"""Formulas as implementations, and edits of their source."""

from __future__ import annotations

import inspect

import pytest
import torch

from veriformer.spec.layers import layer_norm as spec
from veriformer.verify.formulas.base import FormulaKernel
from veriformer.verify.mutants import VARIANTS
from veriformer.verify.mutants.combinators import edited, faulty
from veriformer.verify.mutants.faults import FAULTS
from veriformer.verify.targets.impl import reference

X = torch.tensor([[0.5, -0.25, 2.0], [0.0, 1.0, -3.0]])

KERNELS = [
    *(getattr(fault, "kernel", None) for faults in FAULTS.values() for fault in faults.values()),
    *(kernel for variant in VARIANTS for kernel in variant.kernels.values()),
]
FORMULAS = [kernel for kernel in KERNELS if isinstance(kernel, FormulaKernel)]


@pytest.mark.parametrize("kernel", FORMULAS, ids=lambda kernel: kernel.operation)
def test_every_text_that_is_edited_stands_once_in_the_formula(kernel):
    assert kernel.formula


@pytest.mark.parametrize(("old", "times"), [("mean of nothing", 0), ("is None else", 2)])
def test_a_text_that_does_not_stand_there_once_is_refused(old, times):
    with pytest.raises(ValueError, match=f"edit: expected once in the formula, got {times} times"):
        faulty("layer_norm", edited("layer_norm", (old, "")))(X)


def test_an_edit_leaves_the_spec_and_other_kernels_as_they_are():
    source, right = inspect.getsource(spec), faulty("layer_norm", edited("layer_norm"))
    before = right(X)
    wrong = faulty("layer_norm", edited("layer_norm", ("centred * r, r", "centred, r")))
    assert torch.equal(wrong(X), X - X.mean(-1, keepdim=True))
    assert torch.equal(right(X), before)
    assert inspect.getsource(spec) == source


def test_an_edit_reaches_a_function_that_the_formula_shares_with_another():
    target = torch.tensor([0, 2])
    doubled = faulty("perplexity", edited("perplexity", ("return shifted - xp.log(", "return 2 * shifted - xp.log(")))
    assert not torch.equal(doubled(X, target), reference.perplexity(X, target))
    unedited = faulty("cross_entropy", edited("cross_entropy"))
    assert torch.equal(unedited(X, target), reference.cross_entropy(X, target))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_formula_takes_tensors_of_every_format_and_gives_its_own_back(dtype):
    x, weight = X.to(dtype).requires_grad_(), torch.ones(3, dtype=dtype, requires_grad=True)
    y = faulty("rms_norm", edited("rms_norm"))(x, weight)
    found = torch.autograd.grad(y, (x, weight), torch.ones_like(y))
    expected = torch.autograd.grad(reference.rms_norm(x, weight), (x, weight), torch.ones_like(y))
    assert [y.dtype, *(g.dtype for g in found)] == [dtype] * 3
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one.double().round(decimals=2), other.double().round(decimals=2))


def test_halves_are_computed_in_fp32_and_rounded_where_an_edit_says_so():
    large = torch.tensor([[600.0, 1.0]], dtype=torch.float16)
    assert faulty("rms_norm", edited("rms_norm"))(large)[0, 0] > 1
    assert faulty("rms_norm", FAULTS["LN-09"]["rms_norm"])(large)[0, 0] == 0
