"""AdamW as a plain class, with fixed betas and eps."""

import torch


class AdamW:
    def __init__(self, params, lr, weight_decay):
        self.params, self.lr, self.weight_decay = list(params), lr, weight_decay
        self.state = {}

    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            t, m, v = self.state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            g = p.grad.detach()
            t, m, v = t + 1, 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
            self.state[i] = (t, m.detach(), v.detach())
            with torch.no_grad():
                p.mul_(1 - self.weight_decay)
                p.sub_(self.lr * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8))

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def state_dict(self):
        moments = {i: (t, m.clone(), v.clone()) for i, (t, m, v) in self.state.items()}
        return {"state": moments, "lr": self.lr, "weight_decay": self.weight_decay}

    def load_state_dict(self, saved):
        self.state = {i: (t, m.clone(), v.clone()) for i, (t, m, v) in saved["state"].items()}
        self.lr, self.weight_decay = saved["lr"], saved["weight_decay"]


def adamw(params, lr, *, weight_decay=0.01):
    return AdamW(params, lr, weight_decay)
