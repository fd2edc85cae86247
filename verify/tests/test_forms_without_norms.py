"""Layers and networks that begin with a norm are judged with the identity in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.recognition.adapter import adapter
from veriformer.verify.recognition.candidates import resolved
from veriformer.verify.targets.source_files import module_of

TEXT = """
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim)
        )

    def forward(self, x):
        return RESIDUAL self.net(x)

class Attention(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, self.scale, self.norm = heads, SCALE ** -0.5, nn.LayerNorm(dim)
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Identity() if heads == 1 and dim_head == dim else nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        split = lambda t: t.view(b, n, self.heads, -1).transpose(1, 2)
        q, k, v = map(split, self.to_qkv(self.norm(x)).chunk(3, dim=-1))
        out = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-1) @ v
        return RESIDUAL self.to_out(out.transpose(1, 2).reshape(b, n, -1))
"""


@pytest.mark.whole
@pytest.mark.parametrize(("scale", "right"), [("dim_head", True), ("dim", False)])
def test_a_norm_in_front_is_left_out_and_told(scale: str, right: bool) -> None:
    pins = read_pins(TEXT.replace("SCALE", scale).replace("RESIDUAL", ""))
    assert {name: pin.everywhere for name, pin in pins.items()} == {"feed_forward": True, "multi_head_attention": right}
    for pin, norm in ((pins["feed_forward"], "net.0"), (pins["multi_head_attention"], "norm")):
        assert pin.readings[f"without_{norm}"] == "nn.Identity()"
        assert f"its part {norm!r}, a norm, is left out" in pin.told
        assert norm in pin.unread


@pytest.mark.whole
def test_an_instance_without_a_projection_is_not_offered(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TEXT.replace("SCALE", "dim_head").replace("RESIDUAL", ""))
    pin = read_pins(file.read_text())["multi_head_attention"]
    x, w = torch.ones(1, 2, 4), torch.ones(4, 4)
    with pytest.raises(NotOffered, match="it has 1 linear maps"):
        bound(pin, resolved(module_of(file), pin.name))(x, w, w, w, w, num_heads=1)


@pytest.mark.whole
def test_an_adapter_leaves_them_out_as_well(tmp_path: Path) -> None:
    file, written = tmp_path / "mine.py", tmp_path / "adapted.py"
    file.write_text(TEXT.replace("SCALE", "dim_head").replace("RESIDUAL", ""))
    written.write_text(adapter(str(file), list(read_pins(file.read_text()).values()), {}, written))
    adapted = module_of(written)
    x, w, b = torch.ones(2, 4), torch.ones(4, 4), torch.zeros(4)
    assert adapted.feed_forward(x, w, b, w, b).shape == x.shape
    assert callable(adapted.multi_head_attention)


@pytest.mark.whole
def test_a_layer_that_adds_what_it_is_given_is_not_judged_as_attention_alone() -> None:
    found = recognise_text(TEXT.replace("SCALE", "dim_head").replace("RESIDUAL", "x +"))
    assert not found.pins
    assert all("it adds something to what the operation gives" in one.reason for one in found.refused)
    assert {one.operation for one in found.refused} == {"feed_forward", "multi_head_attention"}
