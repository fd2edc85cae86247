"""Recomputation in the backward pass: reported, and no fault up to one forward pass."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from veriformer.bench import recovery
from veriformer.bench.assess import assess
from veriformer.bench.models import assess as models
from veriformer.bench.models.assess import FORWARD, HELD, STEP, TRAINING
from veriformer.bench.operations.family import FLOPS, RECOMPUTED
from veriformer.bench.operations.family import FORWARD as FORWARD_FLOPS
from veriformer.bench.polynomials import Axis, Grid
from veriformer.bench.recovery import Recovered
from veriformer.bench.targets import Target
from veriformer.bench.verdicts import Verdict

WIDTH, HEADS, VOCABULARY, LAYERS = 16, 2, 13, 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        return x + self.out(((q @ k.mT).tril().softmax(-1) @ v).transpose(1, 2).flatten(2))


class Model(nn.Module):
    """No cache; every layer keeps what its backward pass needs."""

    def __init__(self):
        super().__init__()
        self.table, self.layers = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(Layer() for _ in range(LAYERS))

    def forward(self, ids):
        x = self.table(ids)
        for layer in self.layers:
            x = self.run(layer, x) if self.training else layer(x)
        return x @ self.table.weight.T

    def run(self, layer, x):
        return layer(x)


class Checkpointed(Model):
    reentrant = False

    def run(self, layer, x):
        return checkpoint(layer, x, use_reentrant=self.reentrant)


class Reentrant(Checkpointed):
    reentrant = True


class Twice(Model):
    """The forward pass is computed again before any gradient is sought."""

    def run(self, layer, x):
        layer(x)
        return layer(x)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(models, "LONG", {x: Axis(x, (48, 64, 80), 112) for x in "nt"})
    monkeypatch.setattr(models, "_STEPS", {"B": Axis("B", (2, 3), 4)})
    monkeypatch.setattr(models, "CASES", (FORWARD, STEP, HELD, TRAINING))


def training(model):
    target = Target("mine", None, None, False, SimpleNamespace(causal_lm=model, adamw=torch.optim.SGD))
    return {one.quantity: one for one in models.assess(target) if one.case == TRAINING}


@pytest.mark.whole
@pytest.mark.parametrize("model", [Checkpointed, Reentrant])
def test_checkpointing_costs_a_forward_pass_and_is_no_fault(model):
    found = training(model)
    assert found["FLOPs"].verdict is Verdict.CONFIRMED
    assert Verdict.REFUTED not in {one.verdict for one in found.values()}
    said = found["FLOPs"].reason
    assert "the backward pass recomputes the forward pass (checkpointing)" in said
    assert "of a forward pass more" in said
    # The inputs of two layers, and what the head and the loss need, for each token; no scores.
    assert "between the passes only" in said
    assert "n**2" not in said


@pytest.mark.whole
def test_what_recomputes_nothing_says_nothing():
    found = training(Model)["FLOPs"]
    assert (found.verdict, found.reason) == (Verdict.CONFIRMED, None)


@pytest.mark.whole
def test_a_forward_pass_twice_before_any_gradient_is_a_fault():
    found = training(Twice)["FLOPs"]
    assert found.verdict is Verdict.REFUTED
    assert "times the formula" in found.reason
    assert found.witness.counted > found.witness.claimed


def test_more_than_one_forward_pass_again_is_held_to_the_formula():
    def counted(again):
        return Recovered(Grid(()), [({}, {FLOPS: 30 + again, FORWARD_FLOPS: 10, RECOMPUTED: again})], {})

    assert recovery.recomputation_allowed(counted(10)) == [10]
    assert "one forward pass more" in recovery.recomputation_said(counted(10))
    assert recovery.recomputation_allowed(counted(20)) == [0]
    assert "more than once: 2 times" in recovery.recomputation_said(counted(20))


def test_an_operation_that_is_checkpointed_is_no_fault_either():
    def mlp(x, w1, b1, w2, b2):
        return checkpoint(lambda x: torch.relu(x @ w1 + b1) @ w2 + b2, x, use_reentrant=False)

    (found,) = assess(Target("mine", None, None, False, SimpleNamespace(mlp=mlp)), ("mlp",))
    flops = {one.passes: one for one in found if one.quantity == "FLOPs"}
    assert {one.verdict for one in flops.values()} == {Verdict.CONFIRMED}
    assert not flops["forward"].reason
    assert "of a forward pass more" in flops["forward and backward"].reason
