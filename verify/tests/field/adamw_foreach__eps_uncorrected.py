"""AdamW over lists of tensors, moments changed in place."""

import math

import torch


class FusedAdamW:
    def __init__(self, params, lr, betas, eps, weight_decay):
        self.params = list(params)
        self.hyper = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        self.state = {}

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    @torch.no_grad()
    def step(self):
        lr, (beta1, beta2) = self.hyper["lr"], self.hyper["betas"]
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            if i not in self.state:
                self.state[i] = [0, torch.zeros_like(p), torch.zeros_like(p)]
            self.state[i][0] += 1
            t, exp_avg, exp_avg_sq = self.state[i]
            p.mul_(1 - lr * self.hyper["weight_decay"])
            exp_avg.lerp_(p.grad, 1 - beta1)
            exp_avg_sq.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
            denom = exp_avg_sq.sqrt().add_(self.hyper["eps"]) / math.sqrt(1 - beta2**t)
            p.addcdiv_(exp_avg, denom, value=-lr / (1 - beta1**t))

    def state_dict(self):
        state = {i: [t, m.clone(), v.clone()] for i, (t, m, v) in self.state.items()}
        return {"state": state, "hyper": dict(self.hyper)}

    def load_state_dict(self, given):
        self.state = {i: [t, m.clone(), v.clone()] for i, (t, m, v) in given["state"].items()}
        self.hyper = dict(given["hyper"])


def adamw(params, lr, *, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    return FusedAdamW(params, lr, betas, eps, weight_decay)
