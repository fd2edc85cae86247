"""Clipping of gradients in place, as people write it: a largest norm of 0, and parameters that come once."""

from __future__ import annotations

import pytest

from tests.source_texts import read_pins, recognise_text


@pytest.mark.whole
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


@pytest.mark.whole
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


@pytest.mark.whole
def test_what_divides_by_a_larger_norm_beyond_the_maximum_alone_claims_it() -> None:
    claims = {"1e-6": {"clip_grad_norm.denominator": "norm+1e-6 beyond max_norm"}, "0": {}}
    for added, claimed in claims.items():
        pin = read_pins(BEYOND_ALONE.format(leaves="<=", added=added))["clip_grad_norm"]
        assert (pin.everywhere, pin.conventions) == (True, claimed)
    assert not read_pins(BEYOND_ALONE.format(leaves="<= 2 *", added="1e-6"))["clip_grad_norm"].everywhere


OF_GRADIENTS = """
import numpy as np

def clip_gradients(gradients, clip):
    length = np.sqrt(sum(np.vdot(g, g) for g in gradients))
    if length > {bound}:
        for g in gradients:
            g *= clip / length
"""


@pytest.mark.whole
def test_a_list_of_arrays_may_be_clipped_in_place() -> None:
    assert read_pins(OF_GRADIENTS.format(bound="clip"))["clip_grad_norm"].everywhere
    assert not read_pins(OF_GRADIENTS.format(bound="0"))["clip_grad_norm"].everywhere


RETURNED = """
import torch

def clip_gradients(grads, max_norm):
    length = torch.cat([g.flatten() for g in grads]).norm()
    return [g * (max_norm / length if length > max_norm else 1.0) for g in grads]{norm}
"""


@pytest.mark.whole
def test_gradients_may_be_returned_alone_or_before_their_norm() -> None:
    for norm in ("", ", length"):
        assert read_pins(RETURNED.format(norm=norm))["clip_grad_norm"].everywhere


BY_VALUE = """
import numpy as np

def clip_gradients(grads, clip):
    for g in grads:
        np.clip(g, -clip, clip, out=g)
"""


@pytest.mark.whole
def test_clipping_by_value_is_no_clipping_by_norm() -> None:
    found = recognise_text(BY_VALUE)
    assert not found.pins
    assert "clipping of each entry by its value" in found.refused[0].reason


OF_A_LIST = """
import torch

def gradient_clipping(parameters: list[torch.nn.Parameter], max_l2_norm, eps=1e-6):
    total = torch.sqrt(sum((p.grad ** 2).sum() for p in parameters if p.grad is not None))
    if total <= max_l2_norm:
        return
    for p in parameters:
        if p.grad is None:
            continue
        p.grad = p.grad * max_l2_norm / (total + eps)
"""


@pytest.mark.whole
def test_parameters_that_are_said_to_be_a_list_are_given_as_one() -> None:
    assert read_pins(OF_A_LIST)["clip_grad_norm"].everywhere
    assert not read_pins(OF_A_LIST.replace(": list[torch.nn.Parameter]", ""))["clip_grad_norm"].everywhere
