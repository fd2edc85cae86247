"""Functions that are given the layer that calls them, layers that only look like others, and typed configs."""

from __future__ import annotations

import pytest

from tests.source_texts import read_pins, recognise_text

pytestmark = pytest.mark.usefixtures("warm")

EAGER = """
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
"""
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


@pytest.mark.whole
@pytest.mark.parametrize("written", RESULTS)
def test_attention_that_is_given_its_layer_is_read_with_the_layout_of_its_result(written: str) -> None:
    pin = read_pins(EAGER.replace("RESULT", written))["attention"]
    assert pin.everywhere
    assert pin.readings["layout"] == "[B,H,n,d]"
    assert pin.readings.get("result") == RESULTS[written]


@pytest.mark.whole
def test_heads_that_are_repeated_in_another_order_are_no_reading() -> None:
    repeated = "x[:, :, None].expand(b, h, n_rep, n, d).reshape(b, h * n_rep, n, d)"
    tiled = EAGER.replace(repeated, "x.repeat(1, n_rep, 1, 1)").replace("RESULT", "")
    assert not read_pins(tiled)["attention"].everywhere


def test_a_block_whose_scales_are_no_norms_is_not_judged() -> None:
    assert not read_pins(BLOCK)


UNSCALED = """
import torch

def attention(q, k, v, scale=None, mask=None):
    scores = q @ k.transpose(-1, -2)
    if scale is not None:
        scores = scores * scale
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return scores.softmax(-1) @ v
"""


@pytest.mark.whole
def test_a_scale_that_is_left_out_may_mean_none() -> None:
    pin = read_pins(UNSCALED)["attention"]
    assert (pin.readings["scale"], pin.everywhere) == ("given in every call", True)
    assert "scale" in pin.deviations  # told, for the contract's default is 1/√d_k


ADDED = """
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.heads = num_heads
        self.w_q, self.w_k, self.w_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))

    def forward(self, x):
        q, k, v = (w(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return RESULT
"""


@pytest.mark.whole
@pytest.mark.parametrize(("result", "reason"), [("(y + x).relu()", "adds something"), ("0.9 * y", "")])
def test_a_layer_that_adds_its_input_is_another_one_and_a_wrong_factor_is_a_fault(result: str, reason: str) -> None:
    found = recognise_text(ADDED.replace("RESULT", result))
    assert [pin.everywhere for pin in found.pins] == ([] if reason else [False])
    assert all(reason in one.reason for one in found.refused)


CONFIGURED = """
from dataclasses import dataclass
from torch import nn

class Strict:
    def __setattr__(self, name, value):
        if name == "d_model" and not isinstance(value, list | None):
            raise TypeError(f"d_model: expected a list, got {value!r}")
        object.__setattr__(self, name, value)

@dataclass
class LayerConfig(Strict):
    hidden_size: int
    intermediate_size: int
    key_bias: bool
    d_model: "list[ENTRIES] | None" = None

    def __init__(self, hidden_size=8, intermediate_size=16, d_model=None, key_bias=True):
        self.hidden_size, self.intermediate_size, self.key_bias = hidden_size, intermediate_size, key_bias
        self.d_model = d_model

class MLP(nn.Module):
    def __init__(self, config: LayerConfig):
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.key_bias)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))
"""
"""A config with an entry that has the name of a size and holds a list."""


@pytest.mark.parametrize("entries", ["str", "int"])
def test_an_entry_of_a_config_that_is_declared_as_a_list_is_given_no_size(entries: str) -> None:
    pin = read_pins(CONFIGURED.replace("ENTRIES", entries))["feed_forward"]
    assert pin.everywhere
    assert not pin.told  # no entry had to be found out, for the config is built by its own class
