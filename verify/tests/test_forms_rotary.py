"""Rotary embeddings that turn queries and keys together are called as behind a past, and with features beside."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.table_places import OF_BATCH, START
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


def test_a_table_that_grows_is_made_short_and_positions_are_given_as_stated_and_left_out() -> None:
    module = module_of(FILE)
    (pin,) = recognise(module.GrowingRotary).pins
    assert (pin.operation, pin.everywhere, pin.conventions) == ("rope", True, {})
    assert (pin.readings["rows"], pin.readings["table"]) == ("[B,n]", "grows")
    x = torch.randn(2, 3, 7, 8, generator=torch.Generator().manual_seed(0))
    for positions in (torch.arange(7), torch.arange(1, 8)):
        right, other = (bound(pin, resolved(module, f"{name}GrowingRotary"))(x, positions) for name in ("", "Tardily"))
        assert nearly_equal(other[..., :-1, :], right[..., :-1, :])
        assert not nearly_equal(other, right)


AT = """
import torch

def rope_tables(dim, end, theta):
    angles = torch.outer(torch.arange(end).float(), theta ** (-torch.arange(0, dim, 2) / dim))
    return torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()

def halves(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)

def apply_rope(x, cos, sin, {told}):
    cos, sin = {cos}, {sin}
    return x * cos + halves(x) * sin
"""


OF_ARRAYS = """
import numpy as np

def precompute_cos_sin(head_dim, max_len, theta=10000.0):
    angles = np.outer(np.arange(max_len), theta ** (-np.arange(0, head_dim, 2) / head_dim)).astype(np.float32)
    return np.cos(angles), np.sin(angles)

def apply_rotary(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin {sign} b * cos], axis=-1).reshape(x.shape)
"""


@pytest.mark.whole
def test_tables_may_be_arrays_that_a_function_beside_makes() -> None:
    pin = read_pins(OF_ARRAYS.format(sign="+"))["rope"]
    assert (pin.everywhere, pin.told) == (True, ("tables by precompute_cos_sin",))
    assert not read_pins(OF_ARRAYS.format(sign="-"))["rope"].everywhere


@pytest.mark.whole
@pytest.mark.parametrize(
    ("told", "way", "right", "wrong"),
    [
        ("position_ids", OF_BATCH, "[position_ids][:, None]", "[position_ids[:1]][:, None]"),
        ("start_pos", START, "[start_pos:start_pos + x.shape[2]]", "[:x.shape[2]]"),
    ],
)
def test_what_turns_by_tables_is_told_where_features_stand(told: str, way: str, right: str, wrong: str) -> None:
    text = AT.format(told=told, cos="cos" + right, sin="sin{0}")
    pin = read_pins(text.format(right))["rope"]
    assert (pin.everywhere, pin.readings["told"]) == (True, way)
    assert not read_pins(text.format(wrong))["rope"].everywhere


OWN = """
import torch

class Rotary(torch.nn.Module):
    def __init__(self, dim, length=4096):
        super().__init__()
        angles = torch.arange(length)[:, None] * ({frequencies})
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        cos, sin = self.cos[: x.shape[-2]].to(x.dtype), self.sin[: x.shape[-2]].to(x.dtype)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("frequencies", "judged"),
    [
        ("10000.0 ** (-torch.arange(0, dim, 2) / dim)", True),
        ("10000.0 ** (-torch.arange(0, dim, 2) / (dim + 2))", True),
        ("2.0 - torch.arange(dim // 2)", False),
    ],
)
def test_a_rotation_by_quite_other_frequencies_is_another_function(frequencies: str, judged: bool) -> None:
    found = recognise_text(OWN.format(frequencies=frequencies))
    assert [pin.operation for pin in found.pins] == (["rope"] if judged else [])
    assert judged or "frequencies of its own, by halves" in found.refused[0].reason


COMPLEX = """
import torch

class RoPE(torch.nn.Module):
    def __init__(self, head_dim, max_seq_len=64, theta=10000.0):
        super().__init__()
        angles = torch.outer(torch.arange(max_seq_len), theta ** (-torch.arange(0, head_dim, 2) / head_dim))
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def forward(self, x, start_pos=0):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self.turns[{first}:][: x.shape[-2]]).flatten(-2).type_as(x)
"""


@pytest.mark.whole
def test_complex_tables_stay_complex_and_start_where_they_are_told() -> None:
    pin = read_pins(COMPLEX.format(first="start_pos"))["rope"]
    assert (pin.everywhere, pin.unread) == (True, ())
    assert not read_pins(COMPLEX.format(first="0"))["rope"].everywhere


ANGLES = """
import torch

def apply_rotary(x, pos, theta=10000.0):
    angles = pos.float()[..., None] * theta ** (-torch.arange(0, x.shape[-1], {step})[: x.shape[-1] // 2] / x.shape[-1])
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()
    return torch.stack(pairs, -1).flatten(-2).type_as(x)
"""


@pytest.mark.whole
def test_a_rotary_function_may_make_its_own_angles() -> None:
    assert read_pins(ANGLES.format(step=2))["rope"].everywhere
    assert not any(pin.everywhere for pin in recognise_text(ANGLES.format(step=1)).pins)


COARSE = """
import torch

def precompute_freqs_cis(seq_len, n_elem, base=10000):
    angles = torch.outer(torch.arange(seq_len), base ** (-torch.arange(0, n_elem, 2) / n_elem))
    return torch.stack([angles.cos(), angles.sin()], dim=-1).to(torch.bfloat16)

def apply_rotary_emb(x, freqs_cis):
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    cos, sin = freqs_cis.view(1, pairs.size(1), 1, pairs.size(3), 2).unbind(-1)
    turned = torch.stack([pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 1] * cos + pairs[..., 0] * sin], -1)
    return turned.flatten(3).type_as(x)
"""


def test_pairs_that_are_near_but_for_rounding_go_before_those_right_where_nothing_turns() -> None:
    pin = read_pins(COARSE)["rope"]
    assert (pin.everywhere, pin.conventions, pin.readings["layout"]) == (False, {}, "[B,n,H,d]")


TURNED = """
import torch

def rotate_half(x):
    one, two = x.chunk(2, dim=-1)
    return torch.cat((-two, one), dim=-1)

def apply_rotary_pos_emb(pos, t, scale=1.0):
    return (t * pos.cos() * scale) + (rotate_half(t) * pos.{of_the_second} * scale)
"""


@pytest.mark.whole
def test_what_cosines_are_taken_of_holds_angles_and_no_positions() -> None:
    right = read_pins(TURNED.format(of_the_second="sin()"))["rope"]
    assert (right.form, right.everywhere) == ("functions/rotary_tables", True)
    assert "rope" not in read_pins(TURNED.format(of_the_second="cos()"))


OF_A_CONFIG = """
import torch
from torch import nn

class RotaryEmbedding(nn.Module):
    def __init__(self, config=None):
        super().__init__()
        self.inv_freq = 1.0 / (10000.0 ** (torch.arange(0, 64, 2) / 64))

    def forward(self, x, position_ids):
        freqs = position_ids[..., None].float() * self.inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()

def rotate_half(x):
    one, two = x.chunk(2, dim=-1)
    return torch.cat((-two, one), dim=-1)

def apply_rotary_pos_emb(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
"""


@pytest.mark.whole
def test_tables_of_another_width_are_not_taken() -> None:
    assert read_pins(OF_A_CONFIG)["rope"].everywhere


BEHIND_CACHED = """
import torch
from torch import nn

class RotaryPosEncoding(nn.Module):
    def __init__(self, d_model, base=10000):
        super().__init__()
        self.inv_freq = base ** (-torch.arange(0, d_model, 2).float() / d_model)

    def turn(self, x, angles, offset):
        angles = angles.narrow(0, offset, x.shape[-2])
        one, two = x.chunk(2, dim=-1)
        return (x * angles.cos() + torch.cat((-two, one), dim=-1) * angles.sin()).type_as(x)

    def forward(self, q, k, pos_offset=0):
        angles = torch.outer(torch.arange(k.shape[-2]).float(), self.inv_freq)
        angles = torch.cat((angles, angles), -1)
        return self.turn(q, angles, {of_queries}), self.turn(k, angles, 0)
"""


@pytest.mark.whole
def test_keys_may_be_turned_from_0_on_where_queries_begin_behind_them() -> None:
    right = read_pins(BEHIND_CACHED.format(of_queries="pos_offset"))["rope"]
    assert (right.everywhere, right.readings["keys"]) == (True, "all from 0 on")
    assert not read_pins(BEHIND_CACHED.format(of_queries="0"))["rope"].everywhere


BY_A_METHOD = """
import torch
from torch import nn

class RotaryTables(nn.Module):
    def __init__(self, dim, theta=10000.0):
        super().__init__()
        self.register_buffer("inverse", theta ** (-torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.cos = self.sin = torch.empty(0)

    def get_cos_sin(self, seq_len, offset=0, *, dtype):
        if offset + seq_len > len(self.cos):
            angles = torch.outer(torch.arange(offset + seq_len).float(), self.inverse)
            angles = torch.cat((angles, angles), -1)
            self.cos, self.sin = angles.cos(), angles.sin()
        {kept}
        cos, sin = (table[{rows}].to(dtype) for table in (self.cos, self.sin))
        return cos, sin

def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kept", "rows", "right"),
    [
        ("pass", "offset : offset + seq_len", True),
        ("pass", ":seq_len", False),
        ("self.cos, self.sin = self.cos.to(dtype), self.sin.to(dtype)", "offset : offset + seq_len", False),
    ],
)
def test_a_method_makes_tables_in_pieces_and_in_a_half_before(kept: str, rows: str, right: bool) -> None:
    recognised = recognise_text(BY_A_METHOD.format(kept=kept, rows=rows))
    (pin,) = recognised.pins
    assert pin.everywhere == right
    assert pin.told[0].startswith("tables by RotaryTables")
    assert not recognised.refused
    assert not recognised.unknown


BY_THE_FEATURES = """
import torch
from torch import nn

class RotaryTables(nn.Module):
    def __init__(self, dim, theta=10000.0):
        super().__init__()
        self.register_buffer("inverse", theta ** (-torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.cos = self.sin = None

    def forward(self, x, seq_len):
        if self.cos is None or seq_len > len(self.cos):
            angles = torch.outer(torch.arange(seq_len).float(), self.inverse)
            angles = torch.cat((angles, angles), -1)
            self.cos, self.sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return self.cos[:seq_len], self.sin[:seq_len]

def apply_rope(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin
"""


@pytest.mark.whole
def test_tables_that_follow_the_features_are_asked_for_in_one_dtype() -> None:
    (pin,) = recognise_text(BY_THE_FEATURES).pins
    assert (pin.everywhere, pin.told) == (True, ("tables by RotaryTables",))
