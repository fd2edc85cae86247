"""Each fault of optimizers, schedules and accumulation shows on its trigger, and hides off it.

The judge is what the fault was put into, our operation or one by stages: the two give the same numbers, or not.
"""

import copy

import pytest
import torch

from veriformer.verify import mutants
from veriformer.verify.mutants.combinators import Replaced
from veriformer.verify.mutants.faults import FAULTS
from veriformer.verify.targets.impl import reference

BASE = mutants.build("variant", "training-base")
IDENTIFIERS = ("OPT-02", "OPT-03", "OPT-05", "OPT-06", "OPT-09", "OPT-13", "OPT-14", "SCH-02", "SCH-03", "SCH-07")
IDENTIFIERS += ("GA-02", "GA-03", "CLIP-04")


def train(name, *, steps=3, size=1.0, resumed=False, **options):
    """A parameter that is trained for some steps."""

    def call(target):
        p = torch.tensor([0.5, -2.0], dtype=torch.float64).requires_grad_()
        optimizer = getattr(target, name)([p], 0.125, **options)
        for t in range(steps):
            if resumed and t == 1:
                saved = copy.deepcopy(optimizer.state_dict())
                optimizer = getattr(target, name)([p], 0.5)
                optimizer.load_state_dict(saved)
            p.grad = size * torch.tensor([1.0, 0.25], dtype=torch.float64) * (t + 1)
            optimizer.step()
        return p.detach()

    return call


def rate(name, step, **options):
    return lambda target: torch.tensor(getattr(target, name)(step, **options))


def accumulate(*sizes, weight=1.0):
    def call(target):
        w = torch.tensor(weight, dtype=torch.float64, requires_grad=True)
        batches = [torch.arange(1.0, n + 1, dtype=torch.float64) for n in sizes]
        return target.accumulate_gradients(lambda x: ((w * x).square().sum(), len(x)), [w], batches)[0]

    return call


COSINE = {"max_lr": 0.5, "warmup_steps": 4, "total_steps": 9}

# identifier: (on the trigger, off the trigger or None where there is nowhere to hide)
CASES = {
    "OPT-02": (train("adam", weight_decay=0.5), train("adam")),
    "OPT-03": (train("adamw", weight_decay=0.5), train("adamw", weight_decay=0.0)),
    "OPT-05": (train("adam", eps=1e-3, size=1e-3), train("adam", eps=0.0)),
    "OPT-06": (train("adam"), None),
    "OPT-09": (train("adamw", betas=(0.5, 0.75), resumed=True), train("adamw", resumed=True)),
    "OPT-13": (train("sgd_momentum"), train("sgd_momentum", beta=0.0)),
    "OPT-14": (train("sgd_momentum"), train("sgd_momentum", beta=0.0)),
    "SCH-02": (rate("noam", 2, d_model=8, warmup_steps=4), rate("noam", 1, d_model=8, warmup_steps=4)),
    "SCH-03": (rate("warmup", 2, max_lr=0.5, warmup_steps=4), rate("warmup", 2, max_lr=1.0, warmup_steps=4)),
    "SCH-07": (rate("warmup_cosine", 0, **COSINE), rate("warmup_cosine", 1, **COSINE)),
    "GA-02": (accumulate(2, 2), accumulate(3)),
    "GA-03": (accumulate(3, 1), accumulate(2, 2)),
    "CLIP-04": (accumulate(2, 1), accumulate(2, 1, weight=0.01)),
}


def test_every_fault_has_a_case():
    assert set(CASES) == set(IDENTIFIERS)


@pytest.mark.parametrize("identifier", CASES)
def test_a_fault_shows_on_its_trigger_and_hides_off_it(identifier):
    mutant = mutants.build("mutant", identifier)
    replaced = all(isinstance(fault, Replaced) for fault in FAULTS[identifier].values())
    base = BASE if replaced else reference
    on, off = CASES[identifier]
    assert not torch.equal(on(mutant), on(base))
    if off is not None:
        assert torch.equal(off(mutant), off(base))
