"""Kernels as people wrap them: functions of autograd, products of a gate and a value, norms that ask for a shape."""

from __future__ import annotations

import pytest
import torch

from tests.faulty_forms import form_file
from veriformer.verify import bind
from veriformer.verify.recognition.fitting import commonest
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.loading import needs_recognition
from veriformer.verify.targets.source_files import module_of


@pytest.mark.whole
def test_each_is_recognised_and_what_is_faulty_is_none() -> None:
    found = recognise(module_of(form_file("kernels")))
    assert {(pin.name, pin.operation) for pin in found.pins} == {
        ("LayerNormFunction", "layer_norm"),
        ("rms_norm", "rms_norm"),
        ("fast_rms_layernorm", "rms_norm"),
        ("swiglu_forward", "swiglu"),
        ("silu_and_mul", "swiglu"),
    }
    assert all(pin.everywhere and not pin.deviations for pin in found.pins)
    faulty = recognise(module_of(form_file("kernels_faulty")))
    assert not any(pin.everywhere for pin in faulty.pins)


def test_a_name_of_the_contract_that_asks_for_more_is_not_by_contract() -> None:
    assert needs_recognition(module_of(form_file("kernels")))


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


def test_what_most_calls_are_refused_with_is_told() -> None:
    said = ["raised ValueError: got 1", "raised InterpreterError: 3 blocks", "raised InterpreterError: 5 blocks"]
    assert commonest(said) == "raised InterpreterError: 3 blocks"
    assert commonest([]) == ""


def test_attention_that_asks_for_its_scale_and_is_causal_by_itself_is_called_as_the_contract_says() -> None:
    def attention(q, k, v, sm_scale, causal=True):  # type: ignore[no-untyped-def]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=sm_scale)

    q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64) for _ in range(3))
    called = bind("functions/qkv_attention", attention)
    plain = torch.nn.functional.scaled_dot_product_attention
    assert called(q, k, v).equal(plain(q, k, v))
    assert called(q, k, v, is_causal=True, scale=0.3).equal(plain(q, k, v, is_causal=True, scale=0.3))
