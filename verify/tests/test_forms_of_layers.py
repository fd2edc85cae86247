"""Findings of layers as public files write them: what is told is so, and is a matter of the code."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.source_texts import read_pins, recognise_text
from veriformer.spec.requirement import Weight
from veriformer.verify import bind, check
from veriformer.verify.findings import diagnosis
from veriformer.verify.findings.calls import Case
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.witness import STEPWISE
from veriformer.verify.forms import NotOffered, Pin
from veriformer.verify.forms.without_biases import widened
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.results import Results, Status
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.source_files import module_of
from veriformer.verify.targets.target import Target

FILE = Path(__file__).parent / "forms" / "layers_of_files.py"


@cache
def found(name: str, only: str, *formats: str) -> Results:
    return check(getattr(module_of(FILE), name), only=only.split(), dtype=list(formats), profile="quick")


def recognised(thing: object) -> tuple[Pin, ...]:
    return recognise(thing).pins


def test_nan_behind_a_mask_is_no_mask_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    row, target = cast(CheckRun, None), cast(Target, SimpleNamespace(implementation=None))
    call = Recorded("y", "multi_head_attention", (), {"attention_mask": torch.tensor([[False, True]])})
    right = {"result 0": Reference(np.array([1.0, 2.0]), np.array([0.1, 0.1]))}
    monkeypatch.setattr(diagnosis, "references", lambda *_: None)  # the spec has nothing for NaN that is not hidden
    for given, told in ((np.array([np.nan, 2.0]), None), (np.array([np.nan, 5.0]), "attention_mask is ignored")):
        case = Case(row, call, {"result 0": given}, right)
        monkeypatch.setattr(diagnosis, "outcome", lambda *_, given=given: {"result 0": given})
        found = diagnosis.ignored_option(Condition("multi_head_attention"), [case], [], target)
        assert (found and found.what) == told


@pytest.mark.whole
def test_what_linear_maps_hand_on_in_half_precision_is_no_fault_of_a_module() -> None:
    assert found("Mlp", "feed_forward.range", "fp16").findings == []
    mlp = bind("modules/feed_forward", module_of(FILE).Mlp)
    rows = [torch.full((1, 1), value, dtype=torch.float16) for value in (249.0, 322.0, 1.0, 0.0625, 1.0)]
    x, w1, b1, w2, b2 = rows
    with pytest.raises(NotOffered, match="fc1: its result leaves the range of float16"):
        mlp(x, w1, b1[0], w2, b2[0])
    assert mlp(x, w2, b1[0], w2, b2[0]).isfinite().all()
    assert mlp(x * float("inf"), w1, b1[0], w2, b2[0]).isinf().all()  # what is infinite before is the caller's


@pytest.mark.whole
def test_a_row_of_whose_calls_none_is_offered_is_not_provided() -> None:
    row = found("Attention", "multi_head_attention.range", "fp16").results[-1]
    assert row.status is Status.NOT_PROVIDED, row.message
    assert "not offered: " in str(row.message)


@pytest.mark.whole
def test_constructors_are_given_what_no_operation_asks_for() -> None:
    module = module_of(FILE)
    assert [pin.operation for name in ("Block", "Attention", "Mlp2") for pin in recognised(getattr(module, name))] == [
        "transformer_block",
        "multi_head_attention",
        "feed_forward",
    ]


@pytest.mark.whole
def test_what_pytorch_itself_loses_is_advice_and_told_so() -> None:
    (one,) = found("VocabEmbedding", "token_embedding.range", "fp16").findings
    assert one.weight is Weight.WEAKNESS
    assert one.witness == "torch.nn.functional.embedding"
    assert one.what.endswith(f", as {one.witness} does")


@pytest.mark.whole
def test_one_position_for_all_is_a_table_of_as_many_rows() -> None:
    results = found("apply_rotary_emb", "rope.equation rope.gradient rope.batch", "fp32")
    assert [one.what for one in results.findings] == []


@pytest.mark.whole
def test_a_known_fault_that_only_halves_show_far_from_the_ordinary_is_a_weakness() -> None:
    (one,) = [one for one in found("RMSNorm", "rms_norm.range rms_norm.near_eps", "fp16").findings if one.rows]
    assert one.what == f"rms_norm: the mean square is formed in half precision, as {STEPWISE} does"
    assert one.weight is Weight.WEAKNESS


@pytest.mark.whole
def test_padding_before_the_text_and_causality_leave_a_query_nothing_which_is_no_leak() -> None:
    rows = "multi_head_attention.padding multi_head_attention.no_key"
    findings = found("MaskedAttention", rows, "fp32").findings
    assert {one.weight for one in findings} == {Weight.WEAKNESS}
    (padded,) = [one for one in findings if "multi_head_attention.padding" in one.requirements]
    assert padded.when == "with a query that sees no key"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("act", [F.relu, F.gelu, F.silu, partial(F.gelu, approximate="tanh")])
def test_a_constant_unit_carries_a_bias_exactly(act: Any, dtype: torch.dtype) -> None:
    b2 = torch.tensor([0.75, -2.0], dtype=dtype, requires_grad=True)
    x, w1, b1, w2 = (torch.zeros(*shape, dtype=dtype) for shape in ((1, 3), (3, 2), (2,), (2, 2)))
    wide, w1, w2 = widened(x, w1, b1, w2, b2)
    out = act(wide @ w1) @ w2
    out.backward(torch.tensor([[-2.0, 3.0]], dtype=dtype))
    assert (out.tolist(), b2.grad.tolist()) == ([[0.75, -2.0]], [-2.0, 3.0])


DROPOUT = """
import math
from torch import nn

class SelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout: nn.Module):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        q, k, v = (y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return self.out((self.dropout(scores.softmax(-1)) @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.whole
def test_a_dropout_may_be_given_as_a_module() -> None:
    assert read_pins(DROPOUT)["multi_head_attention"].everywhere


RESIDUAL = """
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, n_head, d_model):
        super().__init__()
        self.n_head = n_head
        self.w_qs, self.w_ks = nn.Linear(d_model, d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.w_vs, self.fc = nn.Linear(d_model, d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.layer_norm = nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, q, k, v):
        x, mapped = q, (self.w_qs(q), self.w_ks(k), self.w_vs(v))
        q, k, v = (y.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for y in mapped)
        z = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        return self.layer_norm(self.fc(z.transpose(1, 2).flatten(2)) + x)
"""


def test_why_a_network_is_not_judged_is_told_as_of_a_network() -> None:
    (one,) = recognise_text(RESIDUAL).refused
    assert one.operation == "multi_head_attention"
    assert "residual connection" in one.reason
