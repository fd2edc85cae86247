"""Modules that take some sizes alone, or a table of as many rows as they are built for."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.forms.binding import bind, bound
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.recognition.candidates import resolved
from veriformer.verify.targets.source_files import module_of

GATED = """
import torch
from torch import nn

class SwiGLU(nn.Module):
    def __init__(self, in_features, hidden_features):
        super().__init__()
        assert TAKEN
        self.fc1, self.fc2 = nn.Linear(in_features, hidden_features), nn.Linear(hidden_features // 2, in_features)

    def forward(self, x):
        gate, value = self.fc1(x).chunk(2, dim=-1)
        return self.fc2(ACTIVATION(gate) * value)
"""


def read_gated(taken: str, activation: str) -> str:
    """Return why a gated network is not read; empty where it is."""
    found = recognise_text(GATED.replace("TAKEN", taken).replace("ACTIVATION", activation))
    return "" if found.pins else found.refused[-1].reason


@pytest.mark.whole
def test_a_network_that_halves_a_size_is_built_with_even_ones() -> None:
    assert not read_gated("hidden_features % 2 == 0", "nn.functional.silu")
    assert "a gate through the sigmoid" in read_gated("hidden_features % 2 == 0", "torch.sigmoid")


def test_what_is_wrong_in_the_few_calls_that_it_answers_is_not_accused() -> None:
    assert "which tells too little" in read_gated(
        "in_features == 6 or in_features * hidden_features == 4", "torch.square"
    )


POSITIONS = """
import torch
from torch import nn

class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        angles = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("table", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))

    def forward(self, ids):
        return self.table[: ids.shape[1]]
"""


def test_a_table_of_positions_is_built_as_long_as_it_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(POSITIONS)
    pin = read_pins(POSITIONS)["sinusoidal_encoding"]
    encoding = bound(pin, resolved(module_of(file), pin.name))
    assert [tuple(encoding(n, 2).shape) for n in (7, 6000)] == [(7, 2), (6000, 2)]


KEPT = """
import torch
from torch import nn

class PositionalEncoding(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, channels, 2) / channels))
        self.kept = None

    def forward(self, x):
        if self.kept is not None and self.kept.shapeAXES == x.shapeAXES:
            return self.kept
        angles = torch.arange(x.shape[1])[:, None] * self.inv_freq
        self.kept = torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(x.dtype).repeat(len(x), 1, 1)
        return self.kept
"""


@pytest.mark.whole
def test_a_table_that_is_kept_for_another_number_of_texts_is_not_taken_for_one() -> None:
    assert read_pins(KEPT.replace("AXES", ""))["sinusoidal_encoding"].everywhere
    (refused,) = recognise_text(KEPT.replace("AXES", "[1:]")).refused
    assert "results have another shape" in refused.reason


SET_BY_NAME = """
from dataclasses import dataclass

from torch import nn

@dataclass
class ModelArgs:
    dim: int = 4096
    hidden_dim: int = 1024
    flash: bool = False

    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            if hasattr(self, name):
                setattr(self, name, value)

class FeedForward(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.args = args
        self.w1, self.w3 = (nn.Linear(args.dim, args.hidden_dim, bias=False) for _ in range(2))
        self.w2 = nn.Linear(args.hidden_dim, args.dim, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))
"""


def test_a_config_may_set_its_entries_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(SET_BY_NAME)
    module = module_of(file)
    network = built(Candidate("FeedForward", module.FeedForward, module), {"width": 8, "inner": 6})
    assert isinstance(network.args, module.ModelArgs)
    assert (network.w1.in_features, network.w1.out_features) == (8, 6)


HELD_OUTWARD = """
import torch
from torch import nn

class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W1 = nn.Parameter(torch.randn(d_ff, d_model))
        self.W2 = nn.Parameter(torch.randn(d_model, d_ff))
        self.W3 = nn.Parameter(torch.randn(d_ff, d_model))

    def forward(self, x):
        return (torch.nn.functional.silu(x @ self.W{gate}.T) * (x @ self.W3.T)) @ self.W2.T
"""


@pytest.mark.whole
def test_matrices_of_a_gated_network_may_be_held_either_way() -> None:
    right = read_pins(HELD_OUTWARD.format(gate=1))["swiglu"]
    assert (right.readings["held"], right.everywhere) == ("[n_out, n_in]", True)
    assert not read_pins(HELD_OUTWARD.format(gate=3))["swiglu"].everywhere


def test_a_hidden_layer_that_never_gets_as_wide_as_asked_for_is_not_made_ever_wider(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    recorded = "super().__init__()\n        MADE.append(d_model * d_ff)"
    file.write_text("MADE = []\n" + HELD_OUTWARD.format(gate=1).replace("super().__init__()", recorded))
    module = module_of(file)
    swiglu = bind("modules/swiglu", module.SwiGLU, held="[n_in, n_out]")
    x, into, out = torch.ones(1, 1), torch.ones(1, 300), torch.ones(300, 1)
    with pytest.raises(NotOffered, match="no instance holds 1 × 300 × 1"):
        swiglu(x, into, into, out)
    assert max(module.MADE) < 2**23
