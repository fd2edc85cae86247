"""Clipping of gradients in place, as people write it: a largest norm of 0, and parameters that come once."""

from __future__ import annotations

from tests.source_texts import read_pins


def test_a_largest_norm_of_0_may_mean_that_nothing_is_clipped() -> None:
    text = """
import torch

def clip_grad_norm_(params, max_norm):
    norm = torch.cat([p.grad.flatten() for p in params]).norm()
    if max_norm > 0:
        for p in params:
            p.grad.mul_((max_norm / (norm + 1e-6)){clamped})
    return norm
"""
    pin = read_pins(text.format(clamped=".clamp(max=1)"))["clip_grad_norm"]
    assert pin.everywhere
    assert pin.readings["zero"] == "no clipping"
    assert not read_pins(text.format(clamped=""))["clip_grad_norm"].everywhere


TWICE = """
import torch

def clip_gradients({parameters}, max_norm):
    grads = [p.grad for p in {name} if p.grad is not None]
    factor = min(1.0, max_norm / torch.stack([g.norm() for g in grads]).norm().item())
    for g in {again}:
        g.mul_(factor)
"""


def test_parameters_may_come_once_as_a_module_gives_them() -> None:
    again = "[p.grad for p in {} if p.grad is not None]"
    for parameters, loop, right in (
        ("parameters", "grads", True),
        ("parameters", again.format("parameters"), False),
        ("params", again.format("params"), True),
    ):
        text = TWICE.format(parameters=parameters, name=parameters, again=loop)
        assert read_pins(text)["clip_grad_norm"].everywhere == right


BEYOND_ALONE = """
import torch

def gradient_clipping(params, max_l2_norm):
    params = list(params)
    norm = sum(p.grad.pow(2).sum() for p in params) ** 0.5
    if norm {leaves} max_l2_norm:
        return
    for p in params:
        p.grad.mul_(max_l2_norm / (norm + {added}))
"""


def test_what_divides_by_a_larger_norm_beyond_the_maximum_alone_claims_it() -> None:
    claims = {"1e-6": {"clip_grad_norm.denominator": "norm+1e-6 beyond max_norm"}, "0": {}}
    for added, claimed in claims.items():
        pin = read_pins(BEYOND_ALONE.format(leaves="<=", added=added))["clip_grad_norm"]
        assert (pin.everywhere, pin.conventions) == (True, claimed)
    assert not read_pins(BEYOND_ALONE.format(leaves="<= 2 *", added="1e-6"))["clip_grad_norm"].everywhere
