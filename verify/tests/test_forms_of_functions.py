"""Functions as people write them: their causality, framework, shapes, tables, domains and further parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.recognise import Recognised
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.target import Target

Load = Callable[[str], Target]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """A file of this text as a target."""

    def found(text: str) -> Target:
        file = tmp_path / "mine.py"
        file.write_text(text)
        return load(str(file))

    return found


def pin_of(found: Recognised, name: str) -> Pin:
    return next(pin for pin in found.pins if pin.name == name)


CAUSAL = """
import math
import torch

def causal_attention(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    hidden = torch.ones(n, m, dtype=torch.bool).triu(m - n + {first_hidden})
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ v
"""


def test_a_function_that_is_always_causal_is_judged_as_such(loaded: Load) -> None:
    target = loaded(CAUSAL.format(first_hidden=1))
    (pin,) = target.recognised["recognised"]
    assert pin["everywhere"]
    assert pin["readings"]["causal"] == "always"
    assert not pin["deviations"]
    assert target.refusals("attention").of({"is_causal": False}, "fp32")
    assert not target.refusals("attention").of({"is_causal": True}, "fp32")
    attention = target.operation("attention")
    assert attention is not None
    q = torch.randn(1, 1, 3, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(attention(q, q, q, is_causal=True)[0, 0, 0], q[0, 0, 0])


def test_a_wrong_diagonal_is_a_fault_of_causality_and_no_other_reading() -> None:
    pin = pin_of(recognise_text(CAUSAL.format(first_hidden=2)), "causal_attention")
    assert not pin.everywhere
    assert pin.readings["causal"] == "always"


OVER_ARRAYS = """
import numpy as np

def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)

def attention(q, k, v, mask):
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v
"""


@pytest.mark.whole
@pytest.mark.parametrize("more", ["", "import torch\n"])
def test_functions_over_arrays_are_never_called_with_tensors_because_of_their_names(loaded: Load, more: str) -> None:
    target = loaded(more + OVER_ARRAYS)
    pins = {pin["operation"]: pin for pin in target.recognised["recognised"]}
    assert not target.recognised.get("by_name")
    assert pins.keys() == {"softmax", "attention"}
    assert all(pin["everywhere"] for pin in pins.values())
    assert pins["attention"]["readings"]["mask"] == "additive"


def test_a_function_over_tensors_may_use_numpy_for_its_numbers(loaded: Load) -> None:
    target = loaded("import numpy as np\nimport torch\n\ndef silu(x):\n    return x / (1 + (-x).exp() * np.e ** 0)\n")
    assert not target.recognised


TEMPERED = """
import math

def attention_scores_mixed(q, k, v, mask=None, tau={tau}, upcast=False, block=64):
    q = q.double() if upcast else q
    k, w = k.to(q.dtype), v.to(q.dtype)
    scores = q @ k.transpose(-1, -2) / (math.sqrt(q.shape[-1]) * tau)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return (scores.softmax(-1) @ w).to(v.dtype)
"""


@pytest.mark.whole
def test_parameters_that_no_reading_explains_put_code_outside_the_contract() -> None:
    (refused,) = recognise_text(TEMPERED.format(tau=3.0)).refused
    assert refused.reason == "its parameter 'tau' is not the contract's"
    pin = pin_of(recognise_text(TEMPERED.format(tau=1.0)), "attention_scores_mixed")
    assert pin.everywhere
    assert pin.unread == ("tau",)  # any value of the others was tried, and is right
    assert Pin.from_dict(pin.to_dict()) == pin


NUCLEUS = """
import torch

def filter_top_p(logprobs, top_p):
    ordered, index = torch.sort(logprobs, dim=-1, descending=True)
    mass = ordered{exp}
    keep = torch.cumsum(mass, dim=-1) - mass < top_p
    keep[..., 0] = True
    ordered = torch.where(keep, ordered, torch.full_like(ordered, float("-inf")))
    return torch.full_like(logprobs, float("-inf")).scatter(-1, index, ordered)
"""


@pytest.mark.whole
def test_a_filter_of_log_probabilities_is_given_such() -> None:
    right = pin_of(recognise_text(NUCLEUS.format(exp=".exp()")), "filter_top_p")
    assert right.everywhere
    assert right.readings["takes"] == "log-probabilities"
    assert any("it takes log-probabilities" in one for one in right.told)
    assert not any(pin.everywhere for pin in recognise_text(NUCLEUS.format(exp="")).pins)


IN_PLACE = """
import torch

def filter_top_k(logits, k):
    if k <= 0:
        return
    logits.masked_fill_(logits < torch.topk(logits, k)[0][..., {kept}, None], float("-inf"))
"""


@pytest.mark.whole
def test_what_returns_nothing_is_read_from_its_first_argument() -> None:
    pin = pin_of(recognise_text(IN_PLACE.format(kept=-1)), "filter_top_k")
    assert pin.everywhere
    assert pin.told == ("it returns nothing, and its first argument is changed in place",)
    assert not any(pin.everywhere for pin in recognise_text(IN_PLACE.format(kept=0)).pins)


ROW_BY_ROW = """
import torch

def top_k_logits(logits, k):
    least = torch.topk(logits, k)[0][:, -1]
    return torch.where(logits < least, torch.full_like(logits, -1e10), logits)
"""


@pytest.mark.whole
def test_rows_that_are_answered_together_are_not_given_one_at_a_time() -> None:
    assert not any(pin.everywhere for pin in recognise_text(ROW_BY_ROW).pins)


ALONE = """
import torch

def sample_top_p(logits, top_p):
    ordered, index = torch.sort(logits, descending=False)
    removed = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
    removed[{last}] = False
    return logits.masked_fill(removed.scatter(0, index, removed), float("-inf"))
"""


@pytest.mark.whole
def test_a_filter_of_scores_of_rank_1_is_given_each_row_alone() -> None:
    (pin,) = recognise_text(ALONE.format(last="-1:")).pins
    assert (pin.everywhere, pin.readings["rows"]) == (True, "[V]")
    assert not any(pin.everywhere for pin in recognise_text(ALONE.format(last=":1")).pins)


RATE = """
def rate(step, model_size, factor, warmup):
    step = max(step, 1)
    return factor * model_size ** -0.5 * min(step ** -0.5, step * warmup ** {power})
"""
COSINE = """
import math

learning_rate, warmup_iters, lr_decay_iters, min_lr = 6e-4, 2000, 600000, 6e-5

def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    if it > lr_decay_iters:
        return min_lr
    share = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * share)) * (learning_rate - min_lr)
"""


def test_rates_are_known_by_what_they_read_and_by_where_they_count_from() -> None:
    assert pin_of(recognise_text(RATE.format(power=-1.5)), "rate").everywhere
    assert not pin_of(recognise_text(RATE.format(power=-0.5)), "rate").everywhere
    pin = pin_of(recognise_text(COSINE), "get_lr")
    assert pin.everywhere
    assert pin.deviations == ("counts",)


SHAPED = '''
import math
import torch

def attention(q{annotation}, k, v):
    """{docstring}"""
    scores = torch.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(q.shape[-1])
    return torch.einsum("bhnm,bmhd->bnhd", scores.softmax(-1), v)

def of_heads_side_by_side(q, k, v, num_heads):
    q, k, v = (x.unflatten(-1, (num_heads, -1)).transpose(1, 2) for x in (q, k, v))
    return ((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v).transpose(1, 2).flatten(2)
'''
STATED = (
    ("", "q, k, v: (batch, heads, n, d)", False),
    ("", "Args:\n        q (torch.Tensor): queries, [B, T, n_heads, head_dim]", True),
    (": \"Float[Tensor, 'batch heads seq d_k']\"", "", False),
    ("", "q: [batch size, num heads, sequence length, head dim]", False),
    ("", "of any shape", True),
)


@pytest.mark.whole
@pytest.mark.parametrize(("annotation", "docstring", "right"), STATED)
def test_a_stated_shape_binds_the_layout(annotation: str, docstring: str, right: bool) -> None:
    found = recognise_text(SHAPED.format(annotation=annotation, docstring=docstring))
    assert any(pin.name == "attention" and pin.everywhere for pin in found.pins) == right


@pytest.mark.whole
def test_a_number_of_heads_is_given_the_heads() -> None:
    text = SHAPED.format(annotation="", docstring="").replace("of_heads_side_by_side", "attention_of_heads")
    pin = pin_of(recognise_text(text), "attention_of_heads")
    assert pin.everywhere
    assert pin.readings["layout"] == "[B,n,H·d]"


TABLES = """
import torch
from torch import nn

class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / {width}))

    def forward(self, x, position_ids):
        angles = position_ids[:, :, None].float() * self.inv_freq
        twice = torch.cat((angles, angles), dim=-1)
        return twice.cos().to(x.dtype), twice.sin().to(x.dtype)

def apply_rotary(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin
"""


@pytest.mark.whole
def test_tables_come_from_the_file_with_their_faults() -> None:
    right = pin_of(recognise_text(TABLES.format(width="dim")), "apply_rotary")
    assert right.everywhere
    assert right.told == ("tables by RotaryEmbedding",)
    assert not any(pin.everywhere for pin in recognise_text(TABLES.format(width="(dim // 2)")).pins)


MASKS = """
import torch

def make_causal_mask(q_len, k_len, device=None):
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).triu(k_len - q_len + 1)

def compute_softmax(scores, dim):
    return torch.softmax(scores, dim)

def fused_linear_loss(logits, c, target):
    return ((logits @ c).logsumexp(-1) - (logits @ c).gather(-1, target[:, None])[:, 0]).mean()
"""


def test_a_verb_before_the_name_of_an_operation_is_read_over() -> None:
    found = recognise_text(MASKS)
    mask = pin_of(found, "make_causal_mask")
    assert mask.everywhere
    assert mask.readings["mask"] == "inverted"
    assert not mask.unread
    assert pin_of(found, "compute_softmax").operation == "softmax"
    assert not any("asks for 'logits', and for none of logits" in one.reason for one in found.refused)


KERNEL_ATTENTION = """
import torch

def {name}(queries, keys, values):
    q, k = (torch.nn.functional.elu(x) + 1 for x in (queries, keys))
    return q @ (k.transpose(-1, -2) @ values) / (q @ k.sum(-2)[..., None])
"""


def test_attention_by_other_mathematics_is_not_accused_by_its_name() -> None:
    assert [pin.operation for pin in recognise_text(KERNEL_ATTENTION.format(name="attention")).pins] == ["attention"]
    assert not recognise_text(KERNEL_ATTENTION.format(name="performer_attention")).pins


DIVIDED = """
import torch

def scaled_dot_product_attention(query, key, value, bias, mask=None, is_causal=None, scale=None):
    if key.shape[-1] != value.shape[-1]:
        raise ValueError("expected values as wide as keys")
    scores = query @ key.mT / (query.shape[-1] ** 0.5 if scale is None else {divisor})
    scores = scores if bias is None else scores + bias
    if is_causal:
        n_q, n_k = scores.shape[-2:]
        scores = scores.masked_fill(~torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q), -torch.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ value
"""


@pytest.mark.whole
@pytest.mark.parametrize(
    ("divisor", "everywhere", "scores"),
    [
        ("scale", True, "divided by it"),
        ("(1 / scale)", True, "multiplied by it"),
        ("scale ** 2", False, None),
    ],
)
def test_a_scale_may_divide_scores_and_options_may_be_demanded(
    divisor: str, everywhere: bool, scores: str | None
) -> None:
    pin = read_pins(DIVIDED.format(divisor=divisor))["attention"]
    assert pin.everywhere == everywhere
    assert scores in (None, pin.readings["scores"])


ALONG = """
import numpy as np

def softmax(x, axis=-1, pairs=False):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    s = e / np.sum(e, axis={axis}, keepdims=True)
    return s[..., None] * np.eye(s.shape[-1]) - s[..., None] * s[..., None, :] if pairs else s
"""


@pytest.mark.whole
def test_an_option_that_a_form_knows_is_not_left_out_because_it_is_wrong() -> None:
    for axis, right in (("axis", True), ("-1", False)):
        pin = read_pins(ALONG.format(axis=axis))["softmax"]
        assert (pin.form, pin.everywhere) == ("functions/softmax", right)


TURNING = """
import torch

class Rotary(torch.nn.Module):
    def angles(self, n, d):
        return torch.outer(torch.arange(n), 10000.0 ** (-torch.arange(0, d, 2) / d))

class {name}(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.part = {part}()

    def forward(self, x):
        pairs = torch.complex(*x.unflatten(-1, (-1, 2)).unbind(-1))
        angles = self.part.angles(x.shape[-2], x.shape[-1])
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)).flatten(-2)
"""


def test_what_has_the_name_of_an_operation_and_cannot_be_read_is_told_unless_it_is_called_inside_another() -> None:
    for name, named in (("RotaryEmbedding", False), ("Encoder", True)):
        (one,) = recognise_text(TURNING.format(name=name, part="Rotary")).refused
        assert (one.name, one.operation, one.named) == ("Rotary", "rope", named)


FLAGGED = """
NORMALISED = True

def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True) if NORMALISED else e
"""


def test_a_flag_of_a_module_that_chooses_another_operation_accuses_nobody() -> None:
    pin = read_pins(FLAGGED)["softmax"]
    assert pin.everywhere
    assert "surroundings" not in pin.readings


MASKED = """
import torch

def shifted_mask(scores, shift, diagonal):
    return torch.ones_like(scores, dtype=torch.bool).tril(diagonal + shift)

def hidden(scores):
    return scores.masked_fill(~shifted_mask(scores, 0, scores.shape[-1] - scores.shape[-2]), -torch.inf)

def causal_attention(q, k, v):
    return {scores}.softmax(-1) @ v
"""


@pytest.mark.whole
def test_a_mask_that_what_is_judged_calls_through_another_function_is_judged_inside() -> None:
    whole = "hidden(q @ k.mT / q.shape[-1] ** 0.5)"
    for scores, named in ((whole, []), (whole.replace("hidden", ""), ["shifted_mask"])):
        found = recognise_text(MASKED.format(scores=scores))
        assert [one.name for one in found.refused if one.named] == named
        assert [pin.operation for pin in found.pins] == ["attention"]
