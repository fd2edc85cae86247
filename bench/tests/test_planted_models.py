"""Complexity bugs planted in whole models: each is refuted in the right words, and the right model is not."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from veriformer.bench.models import assess as models
from veriformer.bench.models.assess import FORWARD, HELD, PLAIN_TEXT, STEP, TEXT, TRAINING
from veriformer.bench.polynomials import Axis
from veriformer.bench.predicted_costs import IN_BLOCKS_WORD
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict

EVERY_CASE = models.CASES

WIDTH, HEADS, VOCABULARY, CAPACITY = 16, 2, 13, 128


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Degrees do not ask for long texts, and only these calls."""
    monkeypatch.setattr(models, "LONG", {x: Axis(x, (40, 48, 56), 64) for x in "nt"})
    monkeypatch.setattr(models, "_STEPS", {"B": Axis("B", (2, 3), 4), "s": Axis("s", (2, 3, 4, 5), 6)})
    monkeypatch.setattr(models, "CASES", (FORWARD, STEP, HELD, TEXT))


class Model(nn.Module):
    """Model of a single layer; its cache is keys and values allocated with their whole capacity."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, ids, attention_mask=None, past_key_values=None, use_cache=False):
        x = self.table(ids)
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        past = past_key_values
        if use_cache:
            past = self.start(k) if past is None else past
            k, v = self.append(past, k, v)
        logits = (x + self.out(self.attend(q, k, v, past).transpose(1, 2).flatten(2))) @ self.table.weight.T
        return SimpleNamespace(logits=logits, past_key_values=past) if use_cache else logits

    def start(self, k):
        whole = (*k.shape[:2], CAPACITY, k.shape[3])
        return SimpleNamespace(k=k.new_empty(whole), v=k.new_empty(whole), length=0)

    def append(self, past, k, v):
        end = past.length + k.shape[2]
        past.k[:, :, past.length : end], past.v[:, :, past.length : end] = k, v
        past.length = end
        return past.k[:, :, :end], past.v[:, :, :end]

    def attend(self, q, k, v, past):
        s = q @ k.mT
        hidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1 + k.shape[2] - q.shape[2])
        return s.masked_fill(hidden, -torch.inf).softmax(-1) @ v


class CopiesItsCache(Model):
    """Its memory is reserved, and yet every step makes a cache of its own."""

    def append(self, past, k, v):
        rest = past.length + k.shape[2]
        past.k, past.v = (
            torch.cat((old[:, :, : past.length], new, old[:, :, rest:]), 2) for old, new in ((past.k, k), (past.v, v))
        )
        past.length = rest
        return past.k[:, :, :rest], past.v[:, :, :rest]


class Concatenates(Model):
    """Its cache grows with the text."""

    def start(self, k):
        return SimpleNamespace(k=k[:, :, :0], v=k[:, :, :0])

    def append(self, past, k, v):
        past.k, past.v = torch.cat((past.k, k), 2), torch.cat((past.v, v), 2)
        return past.k, past.v


class ReadsThePrefixAgain(Model):
    def forward(self, ids, attention_mask=None, past_key_values=None, use_cache=False):
        if past_key_values is not None:
            ids = torch.cat((past_key_values.ids, ids), 1)
        logits = super().forward(ids)
        past = SimpleNamespace(ids=ids)
        return SimpleNamespace(logits=logits, past_key_values=past) if use_cache else logits


class ReadsWholeCapacity(Model):
    def append(self, past, k, v):
        super().append(past, k, v)
        return past.k, past.v

    def attend(self, q, k, v, past):
        s = q @ k.mT
        unwritten = torch.arange(k.shape[2]) >= (past.length if past is not None else k.shape[2])
        return s.masked_fill(unwritten, -torch.inf).softmax(-1) @ v


class EveryPrefixByItself(Model):
    def attend(self, q, k, v, past):
        whole = super().attend
        if q.shape[2] != k.shape[2]:
            return whole(q, k, v, past)
        return torch.cat(
            [whole(q[:, :, :i], k[:, :, :i], v[:, :, :i], past)[:, :, -1:] for i in range(1, q.shape[2] + 1)], 2
        )


class ForwardTwice(Model):
    def forward(self, ids, *rest, **options):
        if self.training:
            super().forward(ids)
        return super().forward(ids, *rest, **options)


def counted(model, variant=None):
    provided = SimpleNamespace(causal_lm=model)
    return list(models.assess(Target("planted", None, None, False, provided, variant)))


def refuted(found):
    return [f"{one.case}: {one.reason}" for one in found if one.verdict is Verdict.REFUTED]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "cases", "variant", "said"),
    [
        (CopiesItsCache, (FORWARD, STEP, HELD), None, "the cache copies itself: cat moves"),
        (ReadsThePrefixAgain, (FORWARD, STEP, HELD), None, "the tokens before are computed again at every step"),
        (ReadsThePrefixAgain, (FORWARD, TEXT), None, "64/3*s**3 more FLOPs than the formula: the tokens before"),
        (ReadsWholeCapacity, (FORWARD, STEP, HELD), None, "the whole capacity is read, whatever the length"),
        (EveryPrefixByItself, (FORWARD, STEP, HELD), None, "every prefix is computed by itself"),
        (ForwardTwice, (FORWARD, STEP, HELD, TRAINING), None, "the forward pass is computed twice"),
        (Model, (FORWARD, STEP, HELD), IN_BLOCKS_WORD, "the scores are materialised"),
    ],
)
def test_a_complexity_bug_of_a_model_is_refuted_in_words(model, cases, variant, said, monkeypatch):
    monkeypatch.setattr(models, "CASES", cases)
    if model is EveryPrefixByItself:
        monkeypatch.setattr(models, "LONG", {x: Axis(x, (8, 10, 12, 14), 18) for x in "nt"})
    found = counted(model, variant)
    assert any(said in reason for reason in refuted(found)), [(c.case, c.quantity, c.verdict, c.reason) for c in found]


@pytest.mark.whole
def test_a_cache_that_grows_by_concatenation_is_told_of_and_no_fault(monkeypatch):
    monkeypatch.setattr(models, "CASES", (FORWARD, STEP, HELD))
    found = counted(Concatenates)
    assert not refuted(found)
    (moved,) = (one for one in found if one.case == STEP and one.quantity == "bytes moved")
    assert "every step copies the cache: cat moves 256 bytes for each earlier token" in moved.reason
    assert "of which the cache holds 128; an append in place moves none" in moved.reason


@pytest.mark.whole
def test_a_right_model_is_of_degree_1_per_step_and_2_per_text_with_a_cache_and_2_and_3_without(monkeypatch):
    monkeypatch.setattr(models, "CASES", EVERY_CASE)
    found = counted(Model)
    assert not refuted(found)
    flops = {one.case: one for one in found if one.quantity == "FLOPs"}
    assert flops[STEP].measured.text == "32*B*(2*t + 77)"
    assert flops[TEXT].measured.text == "32*s*(s + 78)"
    assert flops[models.PLAIN_STEP].measured.text == "32*B*t*(2*t + 77)"
    assert flops[PLAIN_TEXT].claim.text == flops[PLAIN_TEXT].measured.text
    assert flops[PLAIN_TEXT].measured.text == "16*s*(s + 1)*(4*s + 233)/3"
    assert all(one.verdict is Verdict.CONFIRMED for one in flops.values())


def test_a_model_without_a_cache_is_counted_as_far_as_it_goes():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(VOCABULARY, WIDTH)

        def forward(self, ids, attention_mask=None):
            return self.table(ids) @ self.table.weight.T

    found = {one.case: one for one in counted(Plain()) if one.quantity == "FLOPs"}
    assert found[FORWARD].verdict is Verdict.CONFIRMED
    assert found[STEP].verdict is Verdict.NOT_COUNTABLE
    assert "use_cache" in found[STEP].reason


def test_a_module_is_a_model():
    assert Target("planted", None, None, False, Model).operation("causal_lm") is Model
    assert Target("planted", None, None, False, nn.Linear(1, 1)).operation("causal_lm") is not None
    assert Target("planted", None, None, False, nn.Linear(1, 1)).operation("softmax") is None


@pytest.mark.whole
def test_the_first_model_of_a_process_is_counted_without_memory():
    script = (
        "from veriformer.bench.measuring import Bench\n"
        "from veriformer.bench.models import assess\n"
        "from veriformer.bench.targets import find\n"
        "bench = Bench(assess.calls_of(assess.FORWARD, {}), (find('impl:tiled').operation('causal_lm'),), False)\n"
        "bench.count({'B': 2, 'n': 8})\n"
        "assert not bench.real\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
