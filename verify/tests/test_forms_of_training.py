"""Optimizers, schedules, samplers and activations as plain objects and whole runs, right and wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.source_texts import read_pins
from veriformer.verify import check
from veriformer.verify.results import Status
from veriformer.verify.targets.statements import statements

UPDATER = """
import numpy as np

class Adam():
    def __init__(self, learning_rate=0.001, b1=0.9, b2=0.999):
        self.rate, self.b1, self.b2 = learning_rate, b1, b2
        self.m = self.v = self.t = 0

    def update(self, w, grad_wrt_w):
        self.t += 1
        self.m = self.b1 * self.m + (1 - self.b1) * grad_wrt_w
        self.v = self.b2 * self.v + (1 - self.b2) * grad_wrt_w ** 2
        m, v = self.m / (1 - self.b1 {power}), self.v / (1 - self.b2 {power})
        return w - self.rate * m / (np.sqrt(v) + 1e-8)
"""


@pytest.mark.whole
def test_an_optimizer_may_give_the_next_parameter() -> None:
    assert read_pins(UPDATER.format(power="** self.t"))["adam"].everywhere
    assert not read_pins(UPDATER.format(power=""))["adam"].everywhere


RUN = """
import numpy as np

def sgd(grad, x, callback=None, num_iters=200, step_size=0.1, mass=0.9):
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * {step}
    return x
"""


@pytest.mark.whole
def test_a_whole_run_is_judged_by_the_gradients_that_it_asks_for() -> None:
    pin = read_pins(RUN.format(step="velocity"))["sgd_momentum"]
    assert pin.everywhere
    assert not pin.unread
    assert not read_pins(RUN.format(step="(velocity - g)"))["sgd_momentum"].everywhere


NOAM = """
class NoamScheduler:
    def __init__(self, model_dim=512, scale_factor=1, warmup_steps=4000):
        self.width, self.scale, self.warmup = model_dim, scale_factor, warmup_steps

    def __call__(self, step=None, cur_loss=None):
        return self.scale * self.width ** -0.5 * {least}(step ** -0.5, step * self.warmup ** -1.5)
"""


@pytest.mark.whole
def test_a_schedule_may_be_an_object_that_is_called_with_the_step() -> None:
    assert read_pins(NOAM.format(least="min"))["noam"].everywhere
    assert not read_pins(NOAM.format(least="max"))["noam"].everywhere


ANNEALING = """
import math

class AnnealingLR:
    def __init__(self, optimizer, start_lr, warmup_iter, total_iters, decay_style, last_iter, min_lr=0.0):
        self.optimizer, self.start_lr, self.min_lr = optimizer, start_lr, min_lr
        self.warmup_iter, self.total_iters, self.decay_style = warmup_iter, total_iters, decay_style
        self.num_iters = last_iter
        self.step(last_iter)

    def get_lr(self):
        if self.warmup_iter > 0 and self.num_iters <= self.warmup_iter:
            return self.start_lr * self.num_iters / self.warmup_iter
        done = self.num_iters - self.warmup_iter
        if self.decay_style == "linear":
            return self.start_lr * (self.total_iters - done) / self.total_iters
        elif self.decay_style == "cosine":
            share = done / ({whole})
            return self.min_lr + (self.start_lr - self.min_lr) * (1 + math.cos(math.pi * share)) / 2
        return self.start_lr

    def step(self, step_num=None):
        self.num_iters = self.num_iters + 1 if step_num is None else step_num
        for group in self.optimizer.param_groups:
            group["lr"] = self.get_lr()
"""


@pytest.mark.whole
def test_a_schedule_that_is_chosen_by_a_word_is_built_with_it() -> None:
    pin = read_pins(ANNEALING.format(whole="self.total_iters - self.warmup_iter"))["warmup_cosine"]
    assert pin.everywhere
    assert pin.readings["word_of_decay_style"] == "cosine"
    assert not read_pins(ANNEALING.format(whole="self.total_iters"))["warmup_cosine"].everywhere


def test_branches_of_other_words_and_of_what_nobody_gives_are_none_of_the_operation(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = """def rate(step, style="cosine", group=None):
    if step > 3:
        return 3
    if style == "linear":
        step = step + 1
    return helper(step)

def helper(step, more=None):
    if more is not None:
        step = more
    return step
"""
    file.write_text(text)

    def branches(first: int, **given: object) -> list[int]:
        return [one.first for one in statements(str(file), first, **given) if one.branch]  # type: ignore[arg-type]

    assert branches(1) == [3, 4, 5, 6]
    assert branches(1, chosen=frozenset(("style",))) == [3, 4, 6]
    assert branches(8) == [10]
    assert branches(8, inner=True) == []


BIASED = """
import torch

class GeLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, bias):
        ctx.save_for_backward(input, bias)
        x = input + bias
        return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

    @staticmethod
    def backward(ctx, g):
        input, bias = ctx.saved_tensors
        x = input + bias
        t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        f = 0.5 * x * ((1 - t * t) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + t)
        return f * g, f * g
"""


def test_a_bias_is_half_of_the_input_so_that_both_have_gradients() -> None:
    pin = read_pins(BIASED)["gelu"]
    assert pin.everywhere
    assert pin.form == "functions/bias_gelu"
    assert not any(name.startswith("called_with") for name in pin.readings)


PROBABILITIES = """
import torch

def logits_to_probs(logits, temperature: torch.Tensor, top_k: int):
    least = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1:]
    logits = logits.masked_fill(logits {below} least, -float("inf"))
    return (logits / torch.clip(temperature, min=1e-5)).softmax(-1)
"""


@pytest.mark.whole
def test_a_function_that_gives_probabilities_is_judged_by_them() -> None:
    found = read_pins(PROBABILITIES.format(below="<"))
    assert found["top_k_filter"].everywhere
    assert found["temperature_scale"].everywhere
    assert not read_pins(PROBABILITIES.format(below="<="))["top_k_filter"].everywhere


NUCLEUS_TOO = '''
import torch

def logits_to_probs(logits, top_k=None, top_p=1.0):
    """logits: (V,) or (B, V)"""
    ordered, places = torch.sort(logits, dim=-1, descending=True)
    probabilities = ordered.softmax(-1)
    dropped = probabilities.cumsum(-1) - probabilities >= top_p
    if top_k is not None:
        dropped = dropped | (torch.arange(logits.shape[-1]) {beyond} top_k)
    dropped[{first}] = False
    return logits.masked_fill(torch.zeros_like(dropped).scatter(-1, places, dropped), -torch.inf).softmax(-1)
'''


@pytest.mark.whole
def test_a_top_k_is_judged_where_a_nucleus_of_1_drops_nothing(tmp_path: Path) -> None:
    for beyond, status in ((">=", 0), (">", 1)):
        file = tmp_path / f"mine{status}.py"
        file.write_text(NUCLEUS_TOO.format(beyond=beyond, first="..., 0"))
        rows = ["top_k_filter.count", "top_k_filter.long", "top_k_filter.equation"]
        found = check(str(file), only=rows, dtype=["fp32"], profile="quick")
        assert any(row.status is Status.FAIL for row in found.results) == bool(status)


@pytest.mark.whole
def test_a_sampler_is_called_with_as_many_rows_as_it_states() -> None:
    for first, right in (("..., 0", True), ("0", False)):
        pin = read_pins(NUCLEUS_TOO.format(beyond=">=", first=first))["top_p_filter"]
        assert (pin.readings["rows"], pin.everywhere) == ("[B,V]", right)


NAMED_ADAM = """import torch


class Adam(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (b1, b2), lr, eps, decay = group["betas"], group["lr"], group["eps"], group["weight_decay"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                g = p.grad{coupled}
                state["m"].mul_(b1).add_(g, alpha=1 - b1)
                state["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                m, v = state["m"] / (1 - b1 ** state["t"]), state["v"] / (1 - b2 ** state["t"])
                p.mul_({kept})
                p.sub_(lr * m / (v.sqrt() + eps))
"""


@pytest.mark.whole
def test_adam_by_name_may_take_the_decay_out_of_the_moments() -> None:
    decoupled = read_pins(NAMED_ADAM.format(coupled="", kept="1 - lr * decay"))
    assert decoupled["adamw"].everywhere
    assert read_pins(NAMED_ADAM.format(coupled=" + decay * p", kept="1.0"))["adam"].everywhere
    assert not read_pins(NAMED_ADAM.format(coupled="", kept="1 - decay"))["adam"].everywhere


@pytest.mark.whole
def test_decay_may_shrink_the_parameter_after_the_step() -> None:
    before, step = "                p.mul_({kept})\n", "                p.sub_(lr * m / (v.sqrt() + eps))\n"
    assert before + step in NAMED_ADAM
    text = NAMED_ADAM.replace(before + step, step + before)
    pin = read_pins(text.format(coupled="", kept="1 - lr * decay"))["adamw"]
    assert (pin.everywhere, pin.conventions.get("adamw.decay")) == (True, "after")


FLOORED = """
import math

def cosine_lr(step, max_lr, warmup_steps, total_steps, min_lr_ratio=0.1):
    if step < warmup_steps:
        return max_lr * step / warmup_steps
    share = (step - warmup_steps) / (total_steps - warmup_steps)
    share = 0.5 * (1 + math.cos(math.pi * min(share, 1)))
    return max_lr * ({rate})
"""


@pytest.mark.whole
def test_the_floor_of_a_schedule_is_varied() -> None:
    for rate in ("min_lr_ratio + (1 - min_lr_ratio) * share", "max(min_lr_ratio, share)"):
        pin = read_pins(FLOORED.format(rate=rate))["warmup_cosine"]
        assert (pin.everywhere, pin.unread) == (True, ())
    for rate in ("min_lr_ratio + share", "share"):
        assert not read_pins(FLOORED.format(rate=rate))["warmup_cosine"].everywhere


OBJECT = """
from dataclasses import dataclass
from math import cos, pi
from typing import Optional

@dataclass
class CosWithWarmup:
    clip_warmup_steps: Optional[int]
    warmup_min_lr: Optional[float]
    warmup_steps: int
    alpha_f: float = 0.1

    def get_lr(self, initial_lr, step, max_steps):
        lowest, first = self.alpha_f * initial_lr, self.warmup_min_lr
        first = 0.1 * initial_lr if first is None else first
        if step < self.warmup_steps:
            return first + (initial_lr - first) * step / self.warmup_steps
        share = min(1.0, (step - self.warmup_steps) / (max_steps - self.warmup_steps))
        return lowest + ({above}) * (1 + cos(pi * share)) / 2
"""


@pytest.mark.whole
def test_the_sizes_of_a_schedule_may_be_given_to_its_method() -> None:
    assert read_pins(OBJECT.format(above="initial_lr - lowest"))["warmup_cosine"].everywhere
    assert not read_pins(OBJECT.format(above="initial_lr"))["warmup_cosine"].everywhere


PLAIN = """
import torch

class Adam:
    def __init__(self, parameters, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
        self.parameters, self.lr, self.b1, self.b2, self.eps, self.t = list(parameters), lr, beta1, beta2, eps, 0
        self.m, self.v = ({{p: torch.zeros_like(p) for p in self.parameters}} for _ in range(2))

    def step(self):
        self.t += 1
        for p in self.parameters:
            if p.grad is not None:
                self.m[p] = self.b1 * self.m[p] + (1 - self.b1) * p.grad
                self.v[p] = self.b2 * self.v[p] + (1 - self.b2) * p.grad**2
                m, v = self.m[p] / (1 - self.b1{power}), self.v[p] / (1 - self.b2{power})
                p.data -= self.lr * m / (v.sqrt() + self.eps)
"""


@pytest.mark.whole
def test_an_optimizer_may_be_a_plain_class_of_parameters() -> None:
    pin = read_pins(PLAIN.format(power="**self.t"))["adam"]
    assert (pin.everywhere, pin.form) == (True, "optimizers/adam_plain")
    assert not read_pins(PLAIN.format(power=""))["adam"].everywhere


CLOSED = """
from torch.optim import Optimizer

class SGD(Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {{"lr": lr}})

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None{unless}:
                    p.data.add_(p.grad, alpha=-group["lr"])
        return loss
"""


@pytest.mark.whole
def test_every_second_step_is_given_a_closure() -> None:
    assert read_pins(CLOSED.format(unless=""))["gradient_descent"].everywhere
    assert not read_pins(CLOSED.format(unless=" and closure is None"))["gradient_descent"].everywhere


LISTS = """
import numpy as np

class Optimizer:
    def __init__(self, lr=1e-3, lr_max=np.inf, *args, **kwargs):
        self.lr = min(lr, lr_max)

class Adam(Optimizer):
    def __init__(self, beta1=0.9, beta2=0.999, epsilon=1e-8, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.t = beta1, beta2, epsilon, 0
        self.m = self.v = None

    def update(self, parameters: list, gradients: list) -> None:
        self.t += 1
        self.m = [np.zeros_like(p) for p in parameters] if self.m is None else self.m
        self.v = [np.zeros_like(p) for p in parameters] if self.v is None else self.v
        for i, (p, g) in enumerate(zip(parameters, gradients)):
            self.m[i] = self.beta1 * self.m[i] + (1 - self.beta1) * g
            v = self.beta2 * self.v[i] + (1 - self.beta2) * g * g
            {keep}
            m, v = self.m[i] / (1 - self.beta1 ** self.t), v / (1 - self.beta2 ** self.t)
            p -= self.lr * m / (np.sqrt(v) + self.epsilon)
"""


@pytest.mark.whole
def test_an_optimizer_may_hand_on_its_rate_and_change_lists_of_parameters_in_place() -> None:
    for keep, right in (("self.v[i] = v", True), ("pass", False)):
        pin = read_pins(LISTS.format(keep=keep))["adam"]
        assert (pin.everywhere, pin.conventions) == (right, {})
