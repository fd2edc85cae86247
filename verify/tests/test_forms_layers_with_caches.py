"""Layers that keep keys and values give piece by piece what they give at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from veriformer.verify.forms import cached_calls
from veriformer.verify.forms.attention_calls import UNMASKED
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.candidates import resolved
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "layers_with_caches.py"


def pin_of(name: str) -> Pin:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    return pin


def agrees(name: str, pin: Pin, texts: int = 2) -> bool:
    """Return whether a causal call, or one over a context, gives what the right twin gives at once."""
    draw = torch.Generator().manual_seed(0)
    x, *weights = (torch.randn(*shape, generator=draw) for shape in ((texts, 6, 8), *[(8, 8)] * 4))
    given = {"context": x} if "Filled" in name else {"is_causal": True}
    ours = bound(pin, resolved(module_of(FILE), name))(x, *weights, num_heads=2, **given)
    q, k, v = ((x @ w).view(texts, 6, 2, 4).transpose(1, 2) for w in weights[:3])
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal="is_causal" in given)
    return nearly_equal(ours, y.transpose(1, 2).flatten(2) @ weights[3])


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "wrong", "way"),
    [
        ("FlaggedAttention", "ForgetfulFlaggedAttention", cached_calls.FLAG),
        ("PastAttention", "TopPastAttention", cached_calls.RETURNED),
        ("GivenCacheAttention", "TopGivenCacheAttention", cached_calls.GIVEN),
        ("PlacedAttention", "UnturnedPlacedAttention", cached_calls.STARTS),
        ("AlwaysPlacedAttention", "UnturnedAlwaysPlacedAttention", cached_calls.STARTS),
        ("FilledAttention", "MixedUpFilledAttention", cached_calls.FILLED),
    ],
)
def test_layers_are_called_piece_by_piece(name: str, wrong: str, way: str) -> None:
    pin = pin_of(name)
    assert (pin.readings.get("cached"), pin.everywhere, pin.unread) == (way, True, ())
    assert agrees(name, pin)
    assert not agrees(wrong, pin)


@pytest.mark.whole
def test_a_layer_that_always_keeps_is_made_for_as_many_texts_as_are_asked() -> None:
    assert agrees("AlwaysPlacedAttention", pin_of("AlwaysPlacedAttention"), texts=20)


@pytest.mark.whole
def test_a_block_is_called_piece_by_piece() -> None:
    pin = pin_of("GivenCacheBlock")
    assert (pin.operation, pin.readings.get("cached")) == ("transformer_block", cached_calls.GIVEN)
    assert (pin.everywhere, pin.unread) == (True, ())


@pytest.mark.whole
def test_a_layer_is_built_causal_by_its_own_flag() -> None:
    pin = pin_of("GivenCacheAttention")
    assert (pin.readings["flag"], pin.readings["causal"], pin.unread) == ("is_causal", "as it is asked", ())
    layer, x = bound(pin, resolved(module_of(FILE), "GivenCacheAttention")), torch.randn(1, 3, 4)
    both = [layer(x, *[torch.eye(4)] * 4, num_heads=2, is_causal=causal) for causal in (True, False)]
    assert torch.equal(both[0][:, -1], both[1][:, -1])
    assert not torch.equal(both[0][:, 0], both[1][:, 0])


@pytest.mark.whole
def test_a_layer_that_is_causal_without_a_mask_is_read_so() -> None:
    pin = pin_of("BareCausalAttention")
    assert (pin.readings["causal"], pin.everywhere) == (UNMASKED, True)
