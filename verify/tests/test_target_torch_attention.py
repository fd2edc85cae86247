"""PyTorch's kernels of attention as targets: each is the one that its name says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from veriformer.verify import load

FUSED = "aten::_scaled_dot_product_flash_attention_for_cpu"


class Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.add(func._schema.name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("name", "fused"), [("torch:math", False), ("torch:flash", True)])
def test_the_kernel_is_the_one_that_was_asked_for(name: str, fused: bool) -> None:
    q = torch.randn(1, 2, 5, 4)
    with Names() as names:
        load(name).implementation.attention(q, q, q, is_causal=True)
    assert (FUSED in names.seen) == fused


def test_flex_attention_with_its_gradients() -> None:
    attention = load("torch:flex").implementation.attention
    q = torch.zeros(1, 4, 5, 3)  # of which every weight is exactly 1
    k, v = torch.randn(1, 2, 5, 3), torch.randn(1, 2, 5, 2, requires_grad=True)
    o = attention(q, k, v, is_causal=True, window=1)  # each query sees its own key alone
    assert torch.equal(o, v.repeat_interleave(2, 1))
    assert torch.equal(torch.autograd.grad(o.sum(), v)[0], torch.full_like(v, 2.0))
    with pytest.raises(NotImplementedError, match="dropout"):
        attention(q, k, v, dropout_p=0.5, training=True)


@pytest.mark.parametrize("name", ["torch:math", "torch:flash", "torch:flex"])
def test_its_version_is_pytorchs(name: str) -> None:
    assert load(name).version == load("torch").version
