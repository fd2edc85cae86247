"""Schedules told the step before, the kind of their warmup, or its share of all steps; right and wrong."""

from __future__ import annotations

import pytest

from tests.source_texts import read_pins, recognise_text

TOLD = """
class NoamScheduler:
    def __init__(self, hidden_size, optimizer, factor=1.0, warmup=4000):
        self.optimizer, self.size, self.factor, self.warmup = optimizer, hidden_size, factor, warmup

    def step(self, step):
        now = step + {ahead}
        rate = self.factor * self.size ** -0.5 * min(now ** -0.5, now * self.warmup ** -1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
"""


@pytest.mark.whole
def test_a_schedule_may_take_the_step_that_it_is_told_for_the_last_one() -> None:
    rates = {1: "of the next step", 0: "of the step taken"}
    for ahead, rate in rates.items():
        pin = read_pins(TOLD.format(ahead=ahead))["noam"]
        assert (pin.everywhere, pin.readings["rate"]) == (True, rate)
    assert not read_pins(TOLD.format(ahead=2))["noam"].everywhere


KINDS = """
import math

LINEAR, LOGARITHMIC = "linear", "log"

class WarmupLR:
    def __init__(self, optimizer, warmup_min_lr=0.0, warmup_max_lr=0.1, warmup_num_steps=9, warmup_type=LOGARITHMIC):
        self.optimizer, self.least, self.most = optimizer, warmup_min_lr, warmup_max_lr
        self.steps, self.kind, self.last = warmup_num_steps, warmup_type, -1
        self.set(self.least)

    def set(self, rate):
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def share(self):
        if self.last >= self.steps:
            return 1.0
        if self.kind == LINEAR:
            return (self.last {more}) / self.steps
        return math.log(self.last + 1) / math.log(self.steps)

    def step(self):
        self.last += 1
        self.set(self.least + (self.most - self.least) * self.share())
"""


@pytest.mark.whole
def test_a_warmup_of_several_kinds_is_judged_by_the_linear_one_behind_its_first_call() -> None:
    pin = read_pins(KINDS.format(more=""))["warmup"]
    assert (pin.everywhere, pin.readings["rate"]) == (True, "of the step before")
    assert pin.readings["word_of_warmup_type"] == "linear"
    assert not read_pins(KINDS.format(more="** 2"))["warmup"].everywhere


SHARES = """
import math

def lr_cosine_schedule(step, max_lr, min_lr, num_steps, warmup_fraction, annealing_fraction):
    warmup, last = round(num_steps * warmup_fraction), round(num_steps * annealing_fraction)
    if step < warmup:
        return step / warmup * max_lr
    if step < last:
        return min_lr + 0.5 * (1 + math.cos(math.pi * (step - warmup) / {steps})) * (max_lr - min_lr)
    return min_lr
"""


def test_a_warmup_may_be_a_share_of_all_steps() -> None:
    assert read_pins(SHARES.format(steps="(last - warmup)"))["warmup_cosine"].everywhere
    assert not read_pins(SHARES.format(steps="last"))["warmup_cosine"].everywhere


def test_more_arguments_than_roles_accuse_nobody() -> None:
    unknown = SHARES.replace("annealing_fraction", "plateau")
    assert "warmup_cosine" not in read_pins(unknown.format(steps="last"))


RISING = """
from torch.optim.lr_scheduler import LRScheduler

class Base(LRScheduler):
    def __init__(self, optimizer, lr):
        self.optimizer, self.lr = optimizer, lr

    def step(self):
        raise NotImplementedError

class WarmupScheduler(Base):
    def __init__(self, optimizer, init_lr, peak_lr, warmup_steps):
        super().__init__(optimizer, init_lr)
        self.first, self.rise, self.end, self.taken = init_lr, (peak_lr - init_lr) / warmup_steps, warmup_steps, 1

    def step(self):
        if self.taken {before} self.end:
            for group in self.optimizer.param_groups:
                group["lr"] = self.first + self.taken * self.rise
        self.taken += 1
"""


@pytest.mark.whole
def test_a_rise_may_begin_at_an_initial_rate_and_its_base_is_no_schedule() -> None:
    right = recognise_text(RISING.format(before="<="))
    assert [(pin.operation, pin.everywhere) for pin in right.pins] == [("warmup", True)]
    assert right.unknown == ("Base",)
    assert [pin.everywhere for pin in recognise_text(RISING.format(before="<")).pins] == [False]


ACCUMULATING = """
def train_epoch(model, train_loader, criterion, optimizer, accumulation_steps=4):
    model.train()
    optimizer.zero_grad()
    for step, (inputs, targets) in enumerate(train_loader, start=1):
        loss = criterion(model(inputs), targets){divided}
        loss.backward()
        if step % accumulation_steps == 0{last}:
            optimizer.step()
            {cleared}
"""


@pytest.mark.whole
def test_an_epoch_is_judged_by_the_gradients_of_its_steps() -> None:
    right = {"divided": " / accumulation_steps", "last": "", "cleared": "optimizer.zero_grad()"}
    assert read_pins(ACCUMULATING.format(**right))["accumulate_gradients"].everywhere
    whole = {**right, "last": " or step == len(train_loader)"}
    assert read_pins(ACCUMULATING.format(**whole))["accumulate_gradients"].everywhere
    for wrong in ({"divided": ""}, {"cleared": "pass"}):
        assert not read_pins(ACCUMULATING.format(**{**right, **wrong}))["accumulate_gradients"].everywhere


TAKING = """
class RateOptimizer:
    def __init__(self, optimizer, c, d_model, warmup_steps):
        self.inner, self.c, self.width, self.warmup, self.count = optimizer, c, d_model, warmup_steps, 0

    def set_rate(self):
        self.count += 1
        share = min(self.count**-0.5, self.count * self.warmup**-1.5)
        for group in self.inner.param_groups:
            group["lr"] = self.c * self.width**-0.5 * share

    def step(self):
        {first}
        {then}
"""


@pytest.mark.whole
def test_what_takes_the_steps_itself_is_judged_by_the_rate_at_which_they_are_taken() -> None:
    order = ("self.set_rate()", "self.inner.step()")
    pin = read_pins(TAKING.format(first=order[0], then=order[1]))["noam"]
    assert pin.everywhere
    assert not read_pins(TAKING.format(first=order[1], then=order[0]))["noam"].everywhere


OVER_ARRAYS = """
import math

class WarmupCosineLR:
    def __init__(self, optimizer, warmup_iters, lr_decay_iters, min_lr):
        self.optimizer, self.base_lr = optimizer, optimizer.lr
        self.warmup_iters, self.lr_decay_iters, self.min_lr = warmup_iters, lr_decay_iters, min_lr
        self.it = 0
        self.optimizer.lr = self.get_lr()

    def step(self):
        self.it += 1
        self.optimizer.lr = self.get_lr()

    def get_lr(self):
        if self.it < self.warmup_iters:
            return self.{base} * (self.it + 1) / (self.warmup_iters + 1)
        if self.it > self.lr_decay_iters:
            return self.min_lr
        ratio = (self.it - self.warmup_iters) / (self.lr_decay_iters - self.warmup_iters)
        return self.min_lr + 0.5 * (1 + math.cos(math.pi * ratio)) * (self.base_lr - self.min_lr)
"""


@pytest.mark.whole
def test_a_schedule_of_an_optimizer_with_a_rate_may_have_a_step_more_in_its_rise() -> None:
    right, wrong = (read_pins(OVER_ARRAYS.format(base=x))["warmup_cosine"] for x in ("base_lr", "optimizer.lr"))
    assert right.everywhere
    assert right.readings["counts"].startswith("steps, those of the warm-up")
    assert not wrong.everywhere
