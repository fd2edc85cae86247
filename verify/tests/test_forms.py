"""Code as people write it is recognised, faulty code as what it is meant to be, and nothing as what it is not."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch

from tests.faulty_forms import form_file
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.source_files import module_of

READ = {
    "functions": {
        ("scaled_dot_product", "attention"): {"mask": "inverted"},
        ("apply_rotary_emb", "rope"): {"layout": "[B,n,H,d]"},
        ("rms_normalization", "rms_norm"): {},
        ("new_gelu", "gelu"): {},
        ("cross_entropy_loss", "cross_entropy"): {},
        ("subsequent_mask", "causal_mask"): {"mask": "inverted"},
        ("get_slopes", "alibi_slopes"): {},
    },
    "modules": {
        ("LayerNorm", "layer_norm"): {"weight": "as it is"},
        ("MultiHeadAttention", "multi_head_attention"): {"mask": "boolean", "causal": "as it is asked"},
        ("PositionwiseFeedForward", "feed_forward"): {},
        ("SwiGLU", "swiglu"): {"gate": "first"},
        ("PositionalEncoding", "sinusoidal_encoding"): {"batch": "[n,B,d]", "gives": "the input and the encoding"},
        ("TokenEmbedding", "token_embedding"): {},
        ("CausalSelfAttention", "multi_head_attention"): {"causal": "always"},
        ("Block", "transformer_block"): {"norm": "pre", "causal": "always"},
        ("RotaryEmbedding", "rope"): {},
    },
}
RIGHT_IN_BOTH = {"CausalSelfAttention"}
"""Names without a fault in the faulty files, for the fault is in their users."""


def loaded(name: str) -> ModuleType:
    return module_of(form_file(name))


@pytest.fixture(scope="module", params=list(READ))
def found(request: pytest.FixtureRequest) -> tuple[str, Recognised, Recognised]:
    name = str(request.param)
    return name, recognise(loaded(name)), recognise(loaded(f"{name}_faulty"))


def pins(found: Recognised) -> dict[tuple[str, str], Pin]:
    return {(pin.name, pin.operation): pin for pin in found.pins}


def test_operations_are_recognised_with_the_reading_that_fits_everywhere(
    found: tuple[str, Recognised, Recognised],
) -> None:
    name, right, _ = found
    assert pins(right).keys() == READ[name].keys()
    for key, readings in READ[name].items():
        pin = pins(right)[key]
        assert pin.everywhere, pin
        assert {reading: pin.readings[reading] for reading in readings} == readings
    assert not right.refused


def test_a_fault_is_no_convention(found: tuple[str, Recognised, Recognised]) -> None:
    """Faulty code is recognised as the same operation, and no reading makes it right."""
    name, _, faulty = found
    assert pins(faulty).keys() == READ[name].keys()
    assert {pin.name for pin in faulty.pins if pin.everywhere} == RIGHT_IN_BOTH & {key[0] for key in READ[name]}


@pytest.mark.whole
def test_what_is_another_function_is_not_recognised() -> None:
    other = recognise(loaded("others"))
    assert not other.pins
    reasons = {one.name: one.reason for one in other.refused}
    assert "GELU" in reasons["GatedFeedForward"]
    assert "the square of ReLU" in reasons["MLP"]
    assert "distance" in reasons["RelativeAttention"]
    assert "layer_norm" in reasons["FeedForward"]
    assert "1.702" in reasons["quick_gelu"]
    assert "Softmax" in reasons["ClassifierMLP"]
    assert "another shape" in reasons["layer_norm_of_images"]
    assert "second axis" in reasons["rms_normalization"]
    assert "straight" in reasons["hard_swish"]
    assert {"LayerNorm2d", "ReverseRotary"} <= {*other.unknown}
    assert "attention_scores" in {*other.unknown, *reasons}


@pytest.mark.whole
def test_conventions_are_told_from_readings() -> None:
    functions = pins(recognise(loaded("functions")))
    assert functions["scaled_dot_product", "attention"].deviations == ("mask",)
    assert functions["subsequent_mask", "causal_mask"].deviations == ("mask",)
    assert not functions["new_gelu", "gelu"].deviations
    rotary = pins(recognise(loaded("modules")))["RotaryEmbedding", "rope"]
    assert rotary.conventions == {"rope.pairing": "half"}


def test_a_network_is_made_as_wide_as_its_weights_are() -> None:
    network = load(f"{form_file('modules')}:PositionwiseFeedForward").operation("feed_forward")
    assert network is not None
    g = torch.Generator().manual_seed(0)
    shapes = ((2, 300), (300, 5), (5,), (5, 300), (300,))
    x, w1, b1, w2, b2 = (torch.randint(-4, 5, shape, generator=g).float() for shape in shapes)  # exact in any order
    assert torch.equal(network(x, w1, b1, w2, b2), torch.relu(x @ w1 + b1) @ w2 + b2)
