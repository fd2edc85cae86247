"""Masks over the tokens of self-attention are read in every way in which people give them, and judged."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.source_texts import read_pins, recognise_text
from veriformer.verify import check
from veriformer.verify.forms import Pin
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "masks_of_tokens.py"


@cache
def pin_of(name: str) -> Pin:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    return pin


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "mask", "axes"),
    [
        ("KeepAttention", "boolean", "[B,n]"),
        ("DropAttention", "inverted", "[B,n]"),
        ("NumberedAttention", "0/1", "[B,n]"),
        ("AddedAttention", "additive", "[B,1,n,n]"),
        ("ClearedAttention", "boolean", "[B,n]"),
        ("CausalAttention", "boolean", "[B,n]"),
    ],
)
def test_a_mask_of_tokens_is_read_by_what_it_hides(name: str, mask: str, axes: str) -> None:
    pin = pin_of(name)
    assert (pin.readings["mask"], pin.readings["mask_axes"], pin.everywhere) == (mask, axes, True), pin


@pytest.mark.whole
@pytest.mark.parametrize("name", ["LateAttention", "DeafAttention"])
def test_a_mask_that_is_applied_wrongly_is_read_all_the_same(name: str) -> None:
    pin = pin_of(name)
    assert pin.readings["mask"] == "boolean"
    assert not pin.everywhere


@pytest.mark.whole
@pytest.mark.parametrize(("name", "holds"), [("KeepAttention", True), ("LateAttention", False)])
def test_a_mask_of_tokens_is_judged(name: str, holds: bool) -> None:
    rows = ["multi_head_attention.padding"]
    found = check(getattr(module_of(FILE), name), only=rows, dtype=["fp32"], profile="quick")
    assert [one.weight.value for one in found.findings] == ([] if holds else ["leak"])


@pytest.mark.whole
def test_dropout_of_evaluation_mode_is_seen_by_a_rate_that_is_not_zero() -> None:
    pin = pin_of("NoisyAttention")
    assert not pin.everywhere
    assert pin.told == ("right without its dropout, which evaluation mode leaves on: dropout",)
    found = check(
        module_of(FILE).NoisyAttention, only=["multi_head_attention.equation"], dtype=["fp32"], profile="quick"
    )
    assert [one.weight.value for one in found.findings] == ["wrong"]


@pytest.mark.parametrize(
    ("name", "everywhere"),
    [("make_causal_mask", True), ("make_late_causal_mask", False), ("make_weak_causal_mask", False)],
)
def test_masks_of_a_shape_and_a_dtype_are_read(name: str, everywhere: bool) -> None:
    pin = pin_of(name)
    assert (pin.operation, pin.readings["mask"], pin.everywhere) == ("causal_mask", "additive", everywhere)


WINDOWED = """
import torch

def causal_mask(size, window):
    back = torch.arange(size)[:, None] - torch.arange(size)
    return (back >= 0) & (back {inside})
"""


@pytest.mark.whole
def test_a_mask_may_be_asked_for_a_window() -> None:
    assert read_pins(WINDOWED.format(inside="< window"))["causal_mask"].everywhere
    assert not any(pin.everywhere for pin in recognise_text(WINDOWED.format(inside="<= window")).pins)


OVER_ARRAYS = """
import numpy as np

def softmax(x):
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)

class {name}:
    def __init__(self, w):
        self.w = w

    def {method}(self, x, {given}):
        return softmax(x @ x.T) @ x @ self.w
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "method", "given", "told"),
    [
        ("Attention", "__call__", "mask", True),
        ("Attention", "attend", "h", False),
        ("Attention_np", "forward", "h", True),
        ("LayerNorm", "forward", "h", True),
        ("Embeddings", "forward", "h", False),
        ("Adam", "step", "h", True),
    ],
)
def test_a_class_over_arrays_that_no_form_reads_is_not_judged(name: str, method: str, given: str, told: bool) -> None:
    found = recognise_text(OVER_ARRAYS.format(name=name, method=method, given=given))
    assert [one.name for one in found.refused if one.named] == [name] * told
    assert [pin.operation for pin in found.pins] == ["softmax"]


KINDS = """
import enum

class Mask(enum.Enum):
    causal = 1
    whole = 2

def softmax(x, dim=-1):
    return x.softmax(dim)
"""


def test_names_of_kinds_of_masks_are_no_mask() -> None:
    assert not recognise_text(KINDS).refused


SLICED = """
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, n_state, n_head):
        super().__init__()
        self.n_head = n_head
        self.query, self.key, self.value, self.out = (nn.Linear(n_state, n_state) for _ in range(4))

    def forward(self, x, mask=None):
        n = x.shape[1]
        maps = (self.query, self.key, self.value)
        q, k, v = (f(x).unflatten(-1, (self.n_head, -1)).transpose(1, 2) for f in maps)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores + mask[:n, :n]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

class ResidualAttentionBlock(nn.Module):
    def __init__(self, n_state, n_head):
        super().__init__()
        self.attn, self.attn_ln = MultiHeadAttention(n_state, n_head), nn.LayerNorm(n_state)
        self.mlp = nn.Sequential(nn.Linear(n_state, 4 * n_state), nn.GELU(), nn.Linear(4 * n_state, n_state))
        self.mlp_ln = nn.LayerNorm(n_state)

    def forward(self, x, mask=None):
        x = x + self.attn(self.attn_ln(x), mask=mask)
        return x + self.mlp(self.mlp_ln(x))
"""


@pytest.mark.whole
def test_a_mask_of_which_both_axes_are_cut_is_one_for_all_texts() -> None:
    """Cut so, a mask of each of a few texts is left whole, and that of many texts is not."""
    pins = read_pins(SLICED)
    for name in ("multi_head_attention", "transformer_block"):
        read = {key: pins[name].readings[key] for key in ("mask", "mask_axes")}
        assert read == {"mask": "additive", "mask_axes": "[n,n]"}
        assert pins[name].everywhere


MIDWAY = """
import torch
from torch import nn

class EncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward):
        super().__init__()
        self.pre_norm, self.norm1 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.nhead, self.proj = nhead, nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.linear1, self.linear2 = nn.Linear(d_model, dim_feedforward), nn.Linear(dim_feedforward, d_model)

    def forward(self, src):
        q, k, v = self.qkv(self.pre_norm(src)).unflatten(-1, (3, self.nhead, -1)).movedim(-3, 0).transpose(2, 3)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        src = src + self.proj({merged})
        {then}
"""
STREAM = "src = self.norm1(src); return src + self.linear2(nn.functional.gelu(self.linear1(src)))"
USUAL = "return src + self.linear2(nn.functional.gelu(self.linear1(self.norm1(src))))"
MERGED = "y.transpose(1, 2).flatten(2)"
MIXED = "y.flatten(2).reshape(src.shape)"


@pytest.mark.whole
def test_a_norm_in_the_residual_stream_is_another_block() -> None:
    found = recognise_text(MIDWAY.format(merged=MERGED, then=STREAM))
    assert not found.pins
    assert "its second norm in the residual stream" in found.refused[0].reason


@pytest.mark.whole
@pytest.mark.parametrize(("merged", "right"), [(MERGED, True), (MIXED, False)])
def test_a_block_with_a_known_fault_is_judged(merged: str, right: bool) -> None:
    (pin,) = recognise_text(MIDWAY.format(merged=merged, then=USUAL)).pins
    assert (pin.operation, pin.everywhere) == ("transformer_block", right)
