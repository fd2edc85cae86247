"""Functions over arrays are differentiated by the gradients that stand beside them; right and wrong ones."""

from __future__ import annotations

import sys
from types import ModuleType
from unittest.mock import patch

import pytest
import torch

from tests.source_texts import recognise_text
from veriformer.verify.forms.binding import bind
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.interleaving import nearly_equal

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


def test_a_derivative_is_not_the_function_that_it_is_of() -> None:
    text = (
        "import numpy as np\n\ndef gelu_derivative(x):\n    return np.exp(-x * x)\n\ndef d_softmax(x):\n    return x\n"
    )
    assert recognise_text(text).unknown == ("gelu_derivative", "d_softmax")


OPERATIONS = """
import numpy as np

class Ops:
    def softmax(self, x, *, axis=-1, temperature=1.0):
        x = x {by} temperature
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    @staticmethod
    def gelu(x):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + {cubic} * x**3)))
"""


@pytest.mark.whole
def test_methods_of_a_class_that_is_built_from_nothing_are_operations_by_name() -> None:
    right = recognise_text(OPERATIONS.format(by="/", cubic="0.044715"))
    assert {(pin.name, pin.operation, pin.everywhere) for pin in right.pins} == {
        ("Ops.softmax", "softmax", True),
        ("Ops.gelu", "gelu", True),
    }
    wrong = recognise_text(OPERATIONS.format(by="*", cubic="0.44715"))
    assert {(pin.name, pin.everywhere) for pin in wrong.pins} == {("Ops.softmax", False), ("Ops.gelu", False)}
