"""Gradients for a cotangent are those of PyTorch's own function, and cost no import of SymPy."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from veriformer.verify.judging.backward import gradients


class _Seen(torch.autograd.Function):
    """The identity, whose backward pass keeps what it is given."""

    given: torch.Tensor

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, *given: torch.Tensor) -> torch.Tensor:
        _Seen.given = given[0]
        return given[0]


@pytest.mark.parametrize("strides", [(3, 1), (1, 2), (0, 0), (6, 2)])
def test_a_result_gets_the_cotangent_as_it_is(strides: tuple[int, int]) -> None:
    x = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.0, 1e30]], requires_grad=True)
    unused = torch.ones(2, requires_grad=True)
    cotangent = torch.arange(1.0, 13.0).as_strided((2, 3), strides)
    found = gradients(_Seen.apply(x * x), [x, unused], cotangent)
    assert (_Seen.given.stride(), _Seen.given.data_ptr()) == (strides, cotangent.data_ptr())
    wanted = torch.autograd.grad(x * x, x, cotangent)[0]
    assert torch.equal(found[0], wanted)
    assert torch.equal(found[1], torch.zeros(2))


def test_a_graph_that_is_kept_gives_the_same_again() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y, cotangent = x**3, torch.tensor([1.0, -1.0])
    first = gradients(y, [x], cotangent, retain_graph=True)
    assert torch.equal(first[0], gradients(y, [x], cotangent)[0])
    with pytest.raises(RuntimeError, match="second time"):
        gradients(y, [x], cotangent)


@pytest.mark.whole
def test_sympy_is_not_loaded() -> None:
    code = (
        "import sys, torch\n"
        "from veriformer.verify.judging.backward import gradients\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "gradients(x * x, [x], torch.ones(2))\n"
        "sys.exit('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
