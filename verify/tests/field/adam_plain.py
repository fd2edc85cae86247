"""Adam as a plain class."""

import torch


class Adam:
    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.steps = [0 for _ in self.params]
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            g = p.grad + self.weight_decay * p
            self.steps[i] += 1
            self.m[i] = b1 * self.m[i] + (1 - b1) * g
            self.v[i] = b2 * self.v[i] + (1 - b2) * g * g
            m_hat = self.m[i] / (1 - b1 ** self.steps[i])
            v_hat = self.v[i] / (1 - b2 ** self.steps[i])
            p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def state_dict(self):
        moments = {"m": [m.clone() for m in self.m], "v": [v.clone() for v in self.v]}
        return {**moments, "steps": list(self.steps), "options": (self.lr, self.betas, self.eps, self.weight_decay)}

    def load_state_dict(self, state):
        self.m, self.v = [m.clone() for m in state["m"]], [v.clone() for v in state["v"]]
        self.steps = list(state["steps"])
        self.lr, self.betas, self.eps, self.weight_decay = state["options"]


def adam(params, lr, *, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    return Adam(params, lr, betas, eps, weight_decay)
