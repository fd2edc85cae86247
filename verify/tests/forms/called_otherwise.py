"""Functions that are called in other ways than the contract's, each right."""

import math

import torch
from torch import nn


def precompute_freqs_cis(seq_len, n_elem, base=10000, dtype=torch.bfloat16):
    turns = torch.outer(torch.arange(seq_len).float(), 1.0 / base ** (torch.arange(0, n_elem, 2).float() / n_elem))
    return torch.stack((turns.cos(), turns.sin()), -1).to(dtype)


def apply_rotary_emb(x, freqs_cis):
    """Interleaved pairs of [B, n, H, d], by real tables in a format that its caller chooses."""
    pairs = x.float().unflatten(-1, (-1, 2))
    table = freqs_cis.view(1, pairs.shape[1], 1, pairs.shape[3], 2)
    a, b, cos, sin = pairs[..., 0], pairs[..., 1], table[..., 0], table[..., 1]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(3).type_as(x)


def get_cosine_lr(it, max_learning_rate, min_learning_rate, warmup_iters, cosine_cycle_iters):
    if it < warmup_iters:
        return max_learning_rate * it / warmup_iters
    if it > cosine_cycle_iters:
        return min_learning_rate
    done = (it - warmup_iters) / max(1, cosine_cycle_iters - warmup_iters)
    return min_learning_rate + 0.5 * (1 + math.cos(math.pi * done)) * (max_learning_rate - min_learning_rate)


def get_long_cosine_lr(it, max_lr, min_lr, warmup_iters, max_iters):
    """Wrong: the steps of the warmup count as decay."""
    if it < warmup_iters:
        return max_lr * it / warmup_iters
    done = min(1.0, it / max_iters)
    return min_lr + 0.5 * (1 + math.cos(math.pi * done)) * (max_lr - min_lr)


@torch.no_grad()
def gradient_clipping(parameters, max_l2_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.sqrt(sum(g.double().square().sum() for g in grads)) if grads else 0.0
    if norm > max_l2_norm:
        for g in grads:
            g.mul_((max_l2_norm / norm).to(g.dtype))


class SequenceCrossEntropy(nn.Module):
    """Takes sequences alone."""

    def forward(self, outputs, targets):
        b, n, v = outputs.size()
        return nn.functional.cross_entropy(outputs.reshape(b * n, v), targets.reshape(b * n))


class SummedCrossEntropyLoss(nn.Module):
    """The sum, with class 0 as padding: another loss."""

    def forward(self, outputs, targets):
        b, n, v = outputs.size()
        rows, classes = outputs.reshape(b * n, v), targets.reshape(b * n)
        return nn.functional.cross_entropy(rows, classes, reduction="sum", ignore_index=0)


class SGDDecay(torch.optim.Optimizer):
    """Its rate decays with the steps: another optimizer."""

    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                t = self.state[p].setdefault("t", 0)
                p -= group["lr"] / math.sqrt(t + 1) * p.grad
                self.state[p]["t"] = t + 1


class ScheduledAdam:
    """The rate of the paper, by other names."""

    def __init__(self, optimizer, hidden_dim, warm_steps):
        self.optimizer, self.steps, self.warm, self.base = optimizer, 0, warm_steps, hidden_dim**-0.5

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.base * min(self.steps**-0.5, self.steps * self.warm**-1.5)
        self.optimizer.step()


class SteepScheduledAdam(ScheduledAdam):
    """Wrong: the warmup is not the one that meets the decay."""

    def step(self):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.base * min(self.steps**-0.5, self.steps * self.warm**-0.5)
        self.optimizer.step()


class SiLU(nn.Module):
    """A gate by its sigmoid."""

    def forward(self, x):
        return torch.sigmoid(x) * x
