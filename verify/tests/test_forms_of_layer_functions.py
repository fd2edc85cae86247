"""Functions of attention that are given the layer that calls them, and blocks whose parameters look like norms."""

from __future__ import annotations

import pytest

from tests.source_texts import read_pins

pytestmark = pytest.mark.usefixtures("warm")

EAGER = '''
import torch
from torch import nn

def repeat_kv(x, n_rep):
    b, h, n, d = x.shape
    return x[:, :, None].expand(b, h, n_rep, n, d).reshape(b, h * n_rep, n, d)

def eager_attention_forward(module, query, key, value, attention_mask, scaling, dropout=0.0, **kwargs):
    key = repeat_kv(key, module.num_key_value_groups)
    value = repeat_kv(value, module.num_key_value_groups)
    weights = query @ key.transpose(2, 3) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = weights.softmax(-1)
    weights = nn.functional.dropout(weights, p=dropout, training=module.training)
    return (weights @ value)RESULT, weights
'''
"""Attention as the layers of transformers call it."""

RESULTS = {
    "": None,
    ".transpose(1, 2)": "axes 1 and 2 exchanged",
    ".transpose(1, 2).flatten(2)": "[B,n,H·d]",
}

BLOCK = """
import torch
from torch import nn

class DecoderLayer(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.heads = num_heads
        self.scaling = nn.Parameter(torch.ones(dim))
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.norm = nn.LayerNorm(dim)
        self.gain = nn.Parameter(torch.ones(dim))
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x * self.scaling).chunk(3, -1)
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (q, k, v))
        x = x + self.proj(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.gain * self.fc2(nn.functional.gelu(self.fc1(self.norm(x))))
"""
"""A block with one norm and two scales, of which each is as long as a weight or a bias of a norm."""


@pytest.mark.parametrize("written", RESULTS)
def test_attention_that_is_given_its_layer_is_read_with_the_layout_of_its_result(written: str) -> None:
    pin = read_pins(EAGER.replace("RESULT", written))["attention"]
    assert pin.everywhere and pin.readings["layout"] == "[B,H,n,d]"
    assert pin.readings.get("result") == RESULTS[written]


def test_heads_that_are_repeated_in_another_order_are_no_reading() -> None:
    repeated = "x[:, :, None].expand(b, h, n_rep, n, d).reshape(b, h * n_rep, n, d)"
    tiled = EAGER.replace(repeated, "x.repeat(1, n_rep, 1, 1)").replace("RESULT", "")
    assert not read_pins(tiled)["attention"].everywhere


def test_a_block_whose_scales_are_no_norms_is_not_judged() -> None:
    assert not read_pins(BLOCK)
