"""Momentum with a damped velocity."""

import torch


class Momentum:
    def __init__(self, params, lr, beta):
        self.params, self.lr, self.beta = list(params), lr, beta
        self.velocity = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.velocity):
            if p.grad is not None:
                v.mul_(self.beta).add_(p.grad.mul_(1 - self.beta))
                p.add_(v, alpha=-self.lr)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def state_dict(self):
        return {"velocity": [v.clone() for v in self.velocity], "lr": self.lr, "beta": self.beta}

    def load_state_dict(self, saved):
        self.velocity = [v.clone() for v in saved["velocity"]]
        self.lr, self.beta = saved["lr"], saved["beta"]


def sgd_momentum(params, lr, *, beta=0.9):
    return Momentum(params, lr, beta)
