"""Normalisations of public files are read with the constants that they have, and with none where they have none."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.domain import constants
from veriformer.verify.domain.probe import probe_operation
from veriformer.verify.forms.meanings import BUILT
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.size_names import size_of
from veriformer.verify.operations.layers.rms_norm import RMS_NORM
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.recognition.targets import target_of
from veriformer.verify.results.domain import Domain
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "norms_of_files.py"


@cache
def pin_of(name: str) -> Pin:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    return pin


@cache
def domain_of(name: str) -> Domain:
    pins = {"recognised": [pin_of(name).to_dict()]}
    return probe_operation(target_of(getattr(module_of(FILE), name), name, "", pins), RMS_NORM, dtypes=("fp64",))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "everywhere"),
    [
        ("BareRMSNorm", True),
        ("ConfiguredRMSNorm", True),
        ("ShapedRMSNorm", True),
        ("DeafRMSNorm", False),
        ("AlongRMSNorm", True),
        ("DeafAxisRMSNorm", False),
        ("ShapedLayerNorm", True),
        ("LastAxisShapedLayerNorm", False),
        ("rms_norm_ref", True),
        ("deaf_rms_norm_ref", False),
    ],
)
def test_a_norm_is_read_by_its_name_and_by_what_it_is_built_from(name: str, everywhere: bool) -> None:
    assert pin_of(name).everywhere == everywhere


ANNOTATED = """
import torch
from typing import List, Union

class LayerNorm(torch.nn.Module):
    def __init__(
        self,
        normalized_shape: Union[
            int,
            List[int],
        ],
        eps=1e-5,
    ):
        super().__init__()
        self.weight, self.bias = (torch.nn.Parameter(make(normalized_shape)) for make in (torch.ones, torch.zeros))
        self.axes, self.eps = {axes}, eps

    def forward(self, x):
        apart = x - x.mean(self.axes, keepdim=True)
        return self.weight * apart / torch.sqrt(apart.pow(2).mean(self.axes, keepdim=True) + self.eps) + self.bias
"""


@pytest.mark.whole
def test_an_annotation_tells_that_a_norm_takes_the_sizes_of_several_axes() -> None:
    assert read_pins(ANNOTATED.format(axes="list(range(-self.weight.ndim, 0))"))["layer_norm"].everywhere
    assert not read_pins(ANNOTATED.format(axes="-1"))["layer_norm"].everywhere


COUNTED = """
import torch

class LayerNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.dim = (dim,) if isinstance(dim, int) else tuple(dim)
        self.gain, self.bias = (torch.nn.Parameter(make({held})) for make in (torch.ones, torch.zeros))
        self.eps = eps

    def forward(self, x):
        apart = x - x.mean({axes}, keepdim=True)
        return self.gain * apart / torch.sqrt(apart.pow(2).mean({axes}, keepdim=True) + self.eps) + self.bias
"""


@pytest.mark.whole
def test_code_that_holds_a_weight_for_each_entry_of_several_axes_is_built_with_several() -> None:
    every = "tuple(range(-len(self.dim), 0))"
    assert read_pins(COUNTED.format(held="self.dim", axes=every))["layer_norm"].everywhere
    assert not read_pins(COUNTED.format(held="self.dim", axes="-1"))["layer_norm"].everywhere
    assert read_pins(COUNTED.format(held="self.dim[-1:]", axes="-1"))["layer_norm"].everywhere


CONFIGURED = """
import torch
from dataclasses import dataclass

@dataclass
class Sizes:
    D: int
    eps: float = 1e-6

class LN(torch.nn.Module):
    def __init__(self, config: Sizes):
        super().__init__()
        self.middle, self.spread = (torch.nn.Parameter(make(config.D)) for make in (torch.zeros, torch.ones))
        self.eps = config.eps

    def forward(self, x):
        apart = x - x.mean(-1, keepdim=True)
        return apart / (apart.pow(2).sum(-1, keepdim=True) / {n} + self.eps).sqrt() * self.spread + self.middle
"""


def test_a_layer_norm_may_have_its_initials_for_a_name() -> None:
    assert read_pins(CONFIGURED.format(n="x.shape[-1]"))["layer_norm"].everywhere
    assert not read_pins(CONFIGURED.format(n="max(x.shape[-1] - 1, 1)"))["layer_norm"].everywhere


NONE_ASKED = """
import torch

def rms_norm(x, weight, eps):
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    if weight is None:
        return {bare}
    return weight * y
"""


def test_a_demanded_weight_that_the_code_asks_for_may_be_none() -> None:
    assert read_pins(NONE_ASKED.format(bare="y"))["rms_norm"].everywhere
    assert not read_pins(NONE_ASKED.format(bare="x"))["rms_norm"].everywhere


WORDED = """
import torch

def manual_rms_norm(my_input, weight, eps):
    return my_input * torch.rsqrt(my_input.pow(2).{mean}(-1, keepdim=True) + eps) * weight
"""


def test_an_input_may_have_a_word_of_its_usual_name() -> None:
    assert read_pins(WORDED.format(mean="mean"))["rms_norm"].everywhere
    assert not read_pins(WORDED.format(mean="sum"))["rms_norm"].everywhere


OWNED = """
import torch

class RMSNorm(torch.nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.gain, self.small = torch.nn.Parameter(torch.ones(cfg.text_hidden_dim)), cfg.text_rms_eps

    def forward(self, h):
        return h / torch.sqrt((h * h).mean(-1, keepdim=True){inside}){outside} * self.gain
"""


@pytest.mark.whole
def test_entries_of_a_config_may_begin_with_whose_they_are() -> None:
    right = read_pins(OWNED.format(inside=" + self.small", outside=""))["rms_norm"]
    wrong = read_pins(OWNED.format(inside="", outside=" + self.small"))["rms_norm"]
    assert right.everywhere
    assert not wrong.everywhere
    assert not any(name.startswith(BUILT) for name in (*right.readings, *wrong.readings))


def test_a_word_says_whose_sizes_are_where_several_begin_with_it() -> None:
    entries = ("text_hidden_dim", "text_ffn_dim", "text_n_heads", "text_max_positions", "image_size", "image_dim")
    assert [size_of(name, entries) for name in entries] == ["width", "inner", "heads", "length", "", ""]
    assert size_of("text_hidden_dim") == size_of("text_hidden_dim", ("text_hidden_dim", "n_heads")) == ""


HELD_ARRAYS = """
import numpy as np

class RMSNorm:
    def __init__(self, gain, eps=1e-6):
        self.gain, self.eps = gain, eps

    def __call__(self, x):
        return np.multiply(x / np.sqrt(np.square(x).{mean} + self.eps), self.gain)
"""


@pytest.mark.whole
def test_a_class_over_arrays_is_built_from_an_array() -> None:
    pin = read_pins(HELD_ARRAYS.format(mean="mean(axis=-1, keepdims=True)"))["rms_norm"]
    assert pin.everywhere
    assert pin.form == "functions/rms_norm"
    assert not read_pins(HELD_ARRAYS.format(mean="mean()"))["rms_norm"].everywhere


@pytest.mark.parametrize(("name", "eps"), [("BareRMSNorm", 0.0), ("ConfiguredRMSNorm", 1e-3), ("DeafRMSNorm", 1e-3)])
def test_what_code_declares_is_its_constant_and_what_it_does_not_is_measured(name: str, eps: float) -> None:
    assert domain_of(name).constants["eps"] == eps


@pytest.mark.whole
def test_a_number_that_is_no_epsilon_is_not_judged_by() -> None:
    refused = domain_of("WideRMSNorm").refused["fp64"]
    assert refused == "eps: 2 alone explains its results, which is no eps"


def test_a_number_that_another_one_explains_as_well_is_not_judged_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "all_fit", lambda samples, operation, judged_by, values: values["eps"] < 1e-4)
    constants._told_apart(RMS_NORM, "eps", {"eps": 3e-3}, [], "fp32")
    with pytest.raises(constants.Unadmitted, match=r"3e-05 and 1\.5e-05 both explain"):
        constants._told_apart(RMS_NORM, "eps", {"eps": 3e-5}, [], "fp32")


NORM_PER_HEAD = """
import torch

class LayerNormPerHead(torch.nn.Module):
    def __init__(self, dim, num_heads, eps=1e-5, bias=False):
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(dim, eps=eps, bias=bias) for _ in range(num_heads)])

    def forward(self, hidden_states):
        return torch.cat([norm(x) for norm, x in zip(self.norms, torch.split(hidden_states, 1, dim=1))], dim=1)
"""


def test_a_norm_that_asks_for_a_size_that_rows_do_not_have_is_not_judged() -> None:
    assert "layer_norm" not in read_pins(NORM_PER_HEAD)


CLAMPED = """
import torch

class RMSNorm(torch.nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.scale, self.eps = dim ** -0.5, eps
        self.g = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        norm = torch.norm(x, dim=-1, keepdim=True){by}
        return x / norm.clamp(min=self.eps) * self.g
"""


@pytest.mark.whole
def test_an_epsilon_may_be_the_least_norm_that_is_divided_by() -> None:
    right = read_pins(CLAMPED.format(by=" * self.scale"))["rms_norm"]
    assert (right.readings["eps"], right.everywhere) == ("least norm", True)
    assert not read_pins(CLAMPED.format(by=""))["rms_norm"].everywhere


WITHOUT_BIAS = """
import torch
from torch import nn

class UMT5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, hidden_states):
        x = hidden_states - MEAN
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("mean", "operation"), [("0", "rms_norm"), ("hidden_states.mean(-1, keepdim=True)", "layer_norm")]
)
def test_a_layer_norm_without_a_bias_is_the_norm_that_it_computes(mean: str, operation: str) -> None:
    (pin,) = read_pins(WITHOUT_BIAS.replace("MEAN", mean)).values()
    assert (pin.operation, pin.everywhere) == (operation, True)


GROUPED = """
import torch
from torch import nn

class RMSNormGrouped(nn.Module):
    def __init__(self, hidden_size, group_size, eps=1e-6):
        super().__init__()
        self.weight, self.eps, self.group_size = nn.Parameter(torch.ones(hidden_size)), eps, group_size

    def forward(self, x):
        groups = x.unflatten(-1, (-1, self.group_size))
        return self.weight * (groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + self.eps)).flatten(-2)
"""


@pytest.mark.whole
def test_a_norm_over_groups_is_not_judged_as_one_over_rows() -> None:
    found = recognise_text(GROUPED)
    assert not found.pins
    assert "its 'group_size' is no size of the operation" in found.refused[0].reason


def test_clipping_by_the_root_of_a_mean_square_is_no_norm() -> None:
    text = """
def rmsnorm_clip_(x, clip_at=1.0):
    norm = x.norm() / x.numel() ** 0.5
    return x * (clip_at / norm.clamp(min=clip_at))
"""
    assert not recognise_text(text).pins
