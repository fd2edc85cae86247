"""The dropped weights that the dropout checks read off a result: what seems dropped may only be too small to show."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from veriformer.verify.judging.arguments import array
from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.attention.attention.dropout import _underflowed
from veriformer.verify.targets.loading import load


@pytest.mark.parametrize(("score", "unsure"), [(-1.0, False), (-12.0, False), (-18.0, True)])
def test_a_weight_below_the_dtype_is_not_known_to_be_dropped(score: float, unsure: bool) -> None:
    data: Any = None  # nothing is drawn
    trial = Trial(load("torch"), "attention", ("q", "k", "v"), "fp16", "cpu", data)
    q, k = torch.tensor([[[[1.0]]]]), torch.tensor([[[[0.0], [score]]]])
    arguments = {"q": q.half(), "k": k.half(), "v": torch.eye(2)[None, None].half(), "scale": 1.0}
    arguments |= {"dropout_p": 0.5, "training": True}
    shown = array(torch.tensor([[[[2.0, 0.0]]]])) != 0
    assert _underflowed(trial, arguments, shown).tolist() == [[[[False, unsure]]]]
