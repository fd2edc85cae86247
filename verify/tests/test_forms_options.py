"""Parameters with defaults whose names nobody knows: they are the options that they are by what they do."""

from __future__ import annotations

import pytest

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.forms.meanings import CALLED

ATTENTION = """
import torch

def sdp_attention(q, k, v, allowed=None, future_hidden=False, factor=None, wobble=0.0):
    s = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if factor is None else factor)
    if allowed is not None:
        s = s.masked_fill(~allowed, float("-inf"))
    if future_hidden:
        n_q, n_k = s.shape[-2:]
        s = s.masked_fill(~torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q), float("-inf"))
    return torch.softmax(s, -1) @ v + wobble
"""

LOSS = """
from torch.nn import functional as F

def cross_entropy(logits, target, smooth_eps=None, ignore_index=-100, sharpness=1.0):
    log_p = F.log_softmax(sharpness * logits, -1)
    counted = target != ignore_index
    terms = -log_p.gather(-1, target.masked_fill(~counted, 0)[..., None])[..., 0]
    if smooth_eps:
        terms = (1 - smooth_eps) * terms - smooth_eps * log_p.mean(-1)
    return terms.masked_fill(~counted, 0.0).sum() / COUNT
"""


@pytest.mark.whole
def test_options_of_attention_are_known_by_what_they_do() -> None:
    (pin,) = read_pins(ATTENTION).values()
    found = {name: x for name, x in pin.readings.items() if name.startswith(CALLED)}
    assert found == {f"{CALLED}allowed": "mask", f"{CALLED}future_hidden": "is_causal", f"{CALLED}factor": "scale"}
    assert pin.everywhere
    assert pin.unread == ("wobble",)
    assert sum("by what it does" in one for one in pin.told) == 3


@pytest.mark.parametrize(
    ("count", "right"), [("counted.sum()", True), ("(target.numel() if smooth_eps else counted.sum())", False)]
)
def test_an_option_that_shares_a_word_may_be_wrong_in_some_calls(count: str, right: bool) -> None:
    (pin,) = read_pins(LOSS.replace("COUNT", count)).values()
    assert pin.readings[f"{CALLED}smooth_eps"] == "label_smoothing"
    assert pin.everywhere == right
    assert "sharpness" in pin.unread


MASKS = """
import torch

def top_k_mask(logits, top_k):
    order = torch.argsort(-logits, dim=-1, stable=True)
    kept = torch.zeros(logits.shape, dtype=torch.bool)
    return SIGN kept.scatter(-1, order[..., :top_k], True)
"""


@pytest.mark.parametrize(("sign", "reading"), [("", "False in a mask"), ("~", "True in a mask")])
def test_a_filter_may_give_a_mask(sign: str, reading: str) -> None:
    (pin,) = read_pins(MASKS.replace("SIGN ", sign)).values()
    assert (pin.operation, pin.readings["removed"], pin.everywhere) == ("top_k_filter", reading, True)


NORM = """
import numpy as np

def rms_norm_reference(data, weight, axis, epsilon=1e-5):
    mean_square = np.mean(np.square(data), axis, keepdims=True)
    return data / np.sqrt(mean_square + epsilon) * weight
"""


def test_a_norm_may_be_told_its_axis() -> None:
    (pin,) = read_pins(NORM).values()
    assert (pin.operation, pin.everywhere) == ("rms_norm", True)


NETWORK = """
import numpy as np

class GatedMLP:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x):
        return x @ self.weights
"""


def test_a_network_over_arrays_that_nobody_reads_is_told() -> None:
    (one,) = recognise_text(NETWORK).refused
    assert (one.name, one.operation, one.named) == ("GatedMLP", "feed_forward", True)
