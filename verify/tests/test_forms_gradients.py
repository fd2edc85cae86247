"""Gradients of bound code: by its author where it has them, by PyTorch where it has not, none where it gives none."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.faulty_forms import form_file
from tests.form_examples import form_cases, form_text
from veriformer.verify import bind
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.without_biases import widen_with_biases
from veriformer.verify.targets.source_files import module_of


def function_of(text: str, form: str, name: str, **readings: str) -> Any:
    module = ModuleType("mine")
    with patch.dict(sys.modules, mine=module):
        exec(text, vars(module))
        return bind(form, vars(module)[name], **readings)


def normed(text: str) -> tuple[Tensor, list[Tensor]]:
    """Return the result and its leaves, x, weight and bias."""
    function = function_of(text, "modules/layer_norm", "LayerNorm")
    x = torch.linspace(0, 9, 24, dtype=torch.float64).sin().reshape(2, 3, 4)
    leaves = [x, *(torch.linspace(1, 2, 4, dtype=torch.float64) * sign for sign in (1, -1))]
    leaves = [x.requires_grad_() for x in leaves]
    return function(*leaves, eps=1e-5), leaves


@pytest.mark.parametrize(("case", "right"), [(0, True), (1, False)])
def test_a_norm_over_arrays_has_the_gradients_that_were_written_for_it(case: int, right: bool) -> None:
    result, leaves = normed(form_text(f"A norm over arrays has the gradients that were written for it-{case}"))
    expected = torch.nn.functional.layer_norm(leaves[0], (4,), leaves[1], leaves[2], 1e-5)
    assert nearly_equal(result.detach(), expected.detach())
    upstream = torch.linspace(0, 3, 24, dtype=torch.float64).cos().reshape(2, 3, 4)
    found = torch.autograd.grad(result, leaves, upstream, retain_graph=True)
    due = torch.autograd.grad(expected, leaves, upstream)
    assert [nearly_equal(a, b) for a, b in zip(found, due, strict=True)] == [right, True, True]
    again = torch.autograd.grad(result, leaves, upstream)  # what is added up in one call is no part of the next
    assert all(map(torch.equal, found, again))


def test_gradients_that_are_written_for_one_rank_are_not_offered_for_others() -> None:
    text = form_text("A norm over arrays has the gradients that were written for it-0").replace("=rows)", "=(0, 1))")
    result, leaves = normed(text)
    torch.autograd.grad(result.sum(), leaves)
    function = function_of(text, "modules/layer_norm", "LayerNorm")
    x = torch.ones(4, requires_grad=True)
    with pytest.raises(NotOffered, match="its backward raised AxisError"):
        torch.autograd.grad(function(x, torch.ones(4), torch.ones(4)).sum(), x)


@pytest.mark.parametrize(("case", "right"), [(0, True), (1, False)])
def test_layers_within_layers_are_modules_of_a_module(case: int, right: bool) -> None:
    example = form_cases()[f"Layers within layers are modules of a module-{case}"]
    (pin,) = example.recognise().pins
    readings = {key: x for key, x in pin.readings.items() if "built" not in key}
    function = function_of(example.text, pin.form, pin.name, **readings)
    x, *w = (torch.linspace(0, n, 16, dtype=torch.float64).sin().reshape(4, 4) for n in range(5, 10))
    w = [one.requires_grad_() for one in w]
    result = function(x[None], *w, num_heads=2)
    q, k, v = ((x @ one).reshape(4, 2, 2).transpose(0, 1)[None] for one in w[:3])
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 4, 4) @ w[3]
    assert nearly_equal(result.detach(), expected.detach())
    found, due = (torch.autograd.grad(y.sin().sum(), w) for y in (result, expected))
    assert [nearly_equal(a, b) for a, b in zip(found, due, strict=True)] == [right, right, True, True]


SOFTMAX = """
import numpy as np

def softmax(x, axis=-1, derivative=False):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    p = e / e.sum(axis=axis, keepdims=True)
    if derivative:
        return {matrix}
    return p
"""


SIBLING = """
import numpy as np

def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

def softmax_backward(dout, out, axis=-1):
    return out * (dout - (dout * out).sum(axis={axis}, keepdims=True))
"""


METHOD = """
import numpy as np

class Softmax:
    def forward(self, x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        self.p = e / e.sum(axis=-1, keepdims=True)
        return self.p

    def backward(self, dout):
        return self.p * (dout - (dout * self.p).{over})
"""


def is_right(text: str, name: str = "softmax", **given: int) -> bool:
    """Return whether the gradient of the code is PyTorch's, for a square matrix."""
    module = ModuleType("mine")
    with patch.dict(sys.modules, mine=module):
        exec(text, vars(module))
        softmax = bind("functions/softmax", vars(module)[name])
    z = torch.linspace(0, 7, 16, dtype=torch.float64).sin().reshape(4, 4).requires_grad_()
    upstream = torch.linspace(0, 3, 16, dtype=torch.float64).reshape(4, 4)
    (found,) = torch.autograd.grad(softmax(z, **given), z, upstream)
    (expected,) = torch.autograd.grad(torch.softmax(z, given.get("dim", -1)), z, upstream)
    return nearly_equal(found, expected)


JACOBIAN = SOFTMAX.format(matrix="p[..., None] * np.eye(p.shape[-1]) - p[..., None] * p[..., None, :]")


@pytest.mark.parametrize(
    ("text", "name", "given", "right"),
    [
        (JACOBIAN, "softmax", {}, True),
        (SIBLING.format(axis="axis"), "softmax", {"dim": 0}, True),
        (SIBLING.format(axis="-1"), "softmax", {"dim": 0}, False),
        (METHOD.format(over="sum(axis=-1, keepdims=True)"), "Softmax", {}, True),
    ],
)
def test_a_function_over_arrays_has_the_gradient_of_its_author(
    text: str, name: str, given: dict[str, int], right: bool
) -> None:
    assert is_right(text, name, **given) == right


def test_a_matrix_for_each_row_is_no_gradient_along_another_axis() -> None:
    with pytest.raises(NotOffered, match="laid out for the last axis"):
        is_right(JACOBIAN, dim=0)


def test_what_is_no_gradient_of_the_function_is_none() -> None:
    for text, name in (METHOD.format(over="sum()"), "Softmax"), (SOFTMAX.format(matrix="p * (1 - p)"), "softmax"):
        with pytest.raises(RuntimeError, match="does not require grad"):
            is_right(text, name)


def test_a_function_of_autograd_is_called_by_position_with_its_gradients() -> None:
    layer_norm = bind("functions/layer_norm", module_of(form_file("kernels")).LayerNormFunction)
    x, weight, bias = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((3, 5), 5, 5))
    right = torch.nn.functional.layer_norm(x, (5,), weight, bias, 0.5)
    y = layer_norm(x, weight, bias, eps=0.5)
    wanted = torch.autograd.grad(right.square().sum(), (x, weight, bias), retain_graph=True)
    found = torch.autograd.grad(y.square().sum(), (x, weight, bias))
    assert all(bool((a - b).abs().max() < 1e-12) for a, b in zip((y, *found), (right, *wanted), strict=True))


def test_a_product_without_gradients_has_none_by_the_maps_around_it() -> None:
    for detached in (True, False):

        def silu_and_mul(gate: torch.Tensor, value: torch.Tensor, detached: bool = detached) -> torch.Tensor:
            y = torch.nn.functional.silu(gate) * value
            return y.detach() if detached else y

        swiglu = bind("functions/gated_product", silu_and_mul)
        x, *weights = (torch.randn(shape, requires_grad=True) for shape in ((3, 2), (2, 4), (2, 4), (4, 2)))
        assert swiglu(x, *weights).requires_grad != detached


def test_functions_over_jax_arrays_have_results_and_gradients() -> None:
    pytest.importorskip("jax")
    x = torch.linspace(-2, 2, 8, dtype=torch.float64).requires_grad_()
    right = torch.nn.functional.silu(x)
    for file, near in (("arrays_of_jax", True), ("arrays_of_jax_faulty", False)):
        silu = bind("functions/silu", module_of(form_file(file)).swish)
        y = silu(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        (wanted,) = torch.autograd.grad(right.sum(), x, retain_graph=True)
        assert y.dtype == torch.float64
        assert (y.float().equal(right.float()), gradient.float().equal(wanted.float())) == (near, near)


def test_attention_over_jax_arrays_has_results_and_gradients() -> None:
    """Each shape compiles anew, so there are two: as many queries as keys, and fewer."""
    pytest.importorskip("jax")
    generator = torch.Generator().manual_seed(0)
    for file, near in (("arrays_of_jax", True), ("arrays_of_jax_faulty", False)):
        form = {"layout": "[B,n,H,d]"}
        attention = bind("functions/qkv_attention", module_of(form_file(file)).dot_product_attention, **form)
        for n_q in (3, 2):
            q, k, v = (torch.randn(1, 2, n, 4, dtype=torch.float64, generator=generator) for n in (n_q, 3, 3))
            asked = [x.requires_grad_() for x in (q, k, v)]
            y, right = attention(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v)
            weights = torch.randn(right.shape, dtype=torch.float64, generator=generator)
            found = torch.autograd.grad(y, asked, weights)
            wanted = torch.autograd.grad(right, asked, weights)
            assert bool((y - right).abs().max() < 1e-12) == near
            assert all(bool((a - b).abs().max() < 1e-12) == near for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("act", [F.relu, F.gelu, F.silu, partial(F.gelu, approximate="tanh")])
def test_a_constant_unit_carries_a_bias_exactly(act: Any, dtype: torch.dtype) -> None:
    b2 = torch.tensor([0.75, -2.0], dtype=dtype, requires_grad=True)
    x, w1, b1, w2 = (torch.zeros(*shape, dtype=dtype) for shape in ((1, 3), (3, 2), (2,), (2, 2)))
    wide, w1, w2 = widen_with_biases(x, w1, b1, w2, b2)
    out = act(wide @ w1) @ w2
    out.backward(torch.tensor([[-2.0, 3.0]], dtype=dtype))
    assert (out.tolist(), b2.grad.tolist()) == ([[0.75, -2.0]], [-2.0, 3.0])
