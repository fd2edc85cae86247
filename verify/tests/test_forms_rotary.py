"""Rotary embeddings that turn queries and keys together are called as behind a past, and with features beside."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.candidates import resolved
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "rotary_of_files.py"


@pytest.mark.parametrize(
    ("name", "wrong", "asked"),
    [
        ("RotaryEmbedding", "FromTheStartRotaryEmbedding", {}),
        ("apply_rotary_emb", "mix_up_rotary_emb", {"pairing": "half"}),
    ],
)
def test_queries_and_keys_are_turned_each_by_its_own(name: str, wrong: str, asked: dict[str, str]) -> None:
    module = module_of(FILE)
    pin: Pin
    (pin,) = recognise(getattr(module, name)).pins
    assert (pin.operation, pin.everywhere) == ("rope", True)
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    right, other = (bound(pin, resolved(module, one))(x, torch.arange(5), **asked) for one in (name, wrong))
    assert not nearly_equal(other, right)
    assert bool((other == right).all(-1).any())
