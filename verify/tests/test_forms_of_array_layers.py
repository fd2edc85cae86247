"""Layers over NumPy arrays that hold their weights are read as modules, with the derivatives that they were given."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from tests.source_texts import read_pins
from veriformer.verify.forms.binding import bind
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.interleaving import nearly_equal

NORM = """
import numpy as np

class LayerNorm:
    def __init__(self, dim, eps=1e-5):
        self.eps = eps
        self.params = {{"gamma": np.ones(dim), "beta": np.zeros(dim)}}
        self.grads = {{}}

    def forward(self, x):
        self.std = np.sqrt(x.var(-1, keepdims=True) + self.eps)
        self.normed = (x - x.mean(-1, keepdims=True)) / self.std
        return self.params["gamma"] * self.normed + self.params["beta"]

    def backward(self, dout):
        rows = tuple(range(dout.ndim - 1))
        self.grads["gamma"] = self.grads.get("gamma", 0) + (dout * self.normed).sum(axis=rows)
        self.grads["dLdBeta"] = dout.sum(axis={rows})
        d = dout * self.params["gamma"]
        return (d - d.mean(-1, keepdims=True) - self.normed * (d * self.normed).mean(-1, keepdims=True)) / {std}
"""
ATTENTION = """
import numpy as np

class Param:
    def __init__(self, *shape):
        self.data, self.grad = np.random.randn(*shape), np.zeros(shape)

class Linear:
    def __init__(self, n_in, n_out):
        self.w, self.b = Param(n_in, n_out), Param(n_out)

    def forward(self, x):
        self.x = x
        return x @ self.w.data + self.b.data

    def backward(self, dout):
        flat = dout.reshape(-1, dout.shape[-1])
        self.w.grad += self.x.reshape(-1, self.x.shape[-1]).T @ flat
        self.b.grad += flat.sum(0)
        return dout @ self.w.data.T

class MultiHeadAttention:
    def __init__(self, d_model, num_heads):
        self.h, self.dk = num_heads, d_model // num_heads
        self.maps = [Linear(d_model, d_model) for _ in range(3)]
        self.out = Linear(d_model, d_model)

    def split(self, x):
        return x.reshape(*x.shape[:2], self.h, self.dk).transpose(0, 2, 1, 3)

    def merge(self, x):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

    def forward(self, x):
        self.q, self.k, self.v = (self.split(one.forward(x)) for one in self.maps)
        e = self.q @ self.k.transpose(0, 1, 3, 2) / np.sqrt(self.dk)
        e = np.exp(e - e.max(-1, keepdims=True))
        self.p = e / e.sum(-1, keepdims=True)
        return self.out.forward(self.merge(self.p @ self.v))

    def backward(self, dout):
        d = self.split(self.out.backward(dout))
        dp = d @ self.v.transpose(0, 1, 3, 2)
        ds = self.p * (dp - (dp * self.p).sum(-1, keepdims=True)){scale}
        each = ds @ self.k, ds.transpose(0, 1, 3, 2) @ self.q, self.p.transpose(0, 1, 3, 2) @ d
        return sum(one.backward(self.merge(g)) for one, g in zip(self.maps, each))
"""


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


@pytest.mark.parametrize(("std", "right"), [("self.std", True), ("self.std**2", False)])
def test_a_norm_over_arrays_has_the_gradients_that_were_written_for_it(std: str, right: bool) -> None:
    text = NORM.format(std=std, rows="rows")
    assert read_pins(text)["layer_norm"].everywhere
    result, leaves = normed(text)
    expected = torch.nn.functional.layer_norm(leaves[0], (4,), leaves[1], leaves[2], 1e-5)
    assert nearly_equal(result.detach(), expected.detach())
    upstream = torch.linspace(0, 3, 24, dtype=torch.float64).cos().reshape(2, 3, 4)
    found = torch.autograd.grad(result, leaves, upstream, retain_graph=True)
    due = torch.autograd.grad(expected, leaves, upstream)
    assert [nearly_equal(a, b) for a, b in zip(found, due, strict=True)] == [right, True, True]
    again = torch.autograd.grad(result, leaves, upstream)  # what is added up in one call is no part of the next
    assert all(map(torch.equal, found, again))


def test_gradients_that_are_written_for_one_rank_are_not_offered_for_others() -> None:
    result, leaves = normed(NORM.format(std="self.std", rows="(0, 1)"))
    torch.autograd.grad(result.sum(), leaves)
    function = function_of(NORM.format(std="self.std", rows="(0, 1)"), "modules/layer_norm", "LayerNorm")
    x = torch.ones(4, requires_grad=True)
    with pytest.raises(NotOffered, match="its backward raised AxisError"):
        torch.autograd.grad(function(x, torch.ones(4), torch.ones(4)).sum(), x)


@pytest.mark.parametrize(("scale", "right"), [(" / np.sqrt(self.dk)", True), ("", False)])
def test_layers_within_layers_are_modules_of_a_module(scale: str, right: bool) -> None:
    text = ATTENTION.format(scale=scale)
    pin = read_pins(text)["multi_head_attention"]
    assert pin.everywhere
    assert pin.form == "modules/attention_layer"
    function = function_of(text, pin.form, pin.name, **{k: x for k, x in pin.readings.items() if "built" not in k})
    x, *w = (torch.linspace(0, n, 16, dtype=torch.float64).sin().reshape(4, 4) for n in range(5, 10))
    w = [one.requires_grad_() for one in w]
    result = function(x[None], *w, num_heads=2)
    q, k, v = ((x @ one).reshape(4, 2, 2).transpose(0, 1)[None] for one in w[:3])
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 4, 4) @ w[3]
    assert nearly_equal(result.detach(), expected.detach())
    found, due = (torch.autograd.grad(y.sin().sum(), w) for y in (result, expected))
    assert [nearly_equal(a, b) for a, b in zip(found, due, strict=True)] == [right, right, True, True]


WEIGHTLESS = """
import numpy as np

class Softmax:
    def forward(self, x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)
"""


def test_a_class_that_makes_no_arrays_stays_what_it_is() -> None:
    assert read_pins(WEIGHTLESS)["softmax"].form == "functions/softmax"


DROPPED = """
import numpy as np

class Dropout:
    def __init__(self, rate):
        self.rate, self.training = rate, True

    def __call__(self, x):
        return x * (np.random.rand(*x.shape) >= self.rate) if self.training else x

class LayerNorm:
    def __init__(self, dim, eps=1e-5):
        self.gamma, self.beta, self.eps, self.dropout = np.ones(dim), np.zeros(dim), eps, Dropout(0.5)

    def eval(self):
        {evaluated}

    def forward(self, x):
        normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.eps)
        return self.dropout(self.gamma * normed + self.beta)
"""


@pytest.mark.parametrize(("evaluated", "right"), [("self.dropout.training = False", True), ("pass", False)])
def test_a_layer_is_put_into_evaluation_mode_by_its_own_method(evaluated: str, right: bool) -> None:
    pins = read_pins(DROPPED.format(evaluated=evaluated))
    assert ("layer_norm" in pins and pins["layer_norm"].everywhere) == right


def test_results_of_other_types_are_no_results() -> None:
    text = """
class Value:
    def __init__(self, data):
        self.data, self.shape = data, data.shape

def layer_norm(x, weight, bias, eps=1e-5):
    return Value(x)
"""
    assert "layer_norm" not in read_pins(text)
