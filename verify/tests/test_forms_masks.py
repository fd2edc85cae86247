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


@pytest.mark.parametrize("name", ["LateAttention", "DeafAttention"])
def test_a_mask_that_is_applied_wrongly_is_read_all_the_same(name: str) -> None:
    pin = pin_of(name)
    assert pin.readings["mask"] == "boolean"
    assert not pin.everywhere


@pytest.mark.parametrize(("name", "holds"), [("KeepAttention", True), ("LateAttention", False)])
def test_a_mask_of_tokens_is_judged(name: str, holds: bool) -> None:
    rows = ["multi_head_attention.padding"]
    found = check(getattr(module_of(FILE), name), only=rows, dtype=["fp32"], profile="quick")
    assert [one.weight.value for one in found.findings] == ([] if holds else ["leak"])


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
