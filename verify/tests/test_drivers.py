"""Runs of optimizers as scripts quote them: gradients come as new tensors and into those that are there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from veriformer.verify.scripts.drivers import drive_optimizer


class Momentum:
    """Gradient descent with a velocity that starts at the first gradient."""

    def __init__(self, params: Any, lr: float, *, copied: bool) -> None:
        self.params, self.lr, self.copied = list(params), lr, copied
        self.velocity: dict[int, torch.Tensor] = {}

    @torch.no_grad()
    def step(self) -> None:
        for i, p in enumerate(self.params):
            if p.grad is not None:
                first = p.grad.clone() if self.copied else p.grad
                self.velocity[i] = self.velocity[i].mul_(0.9).add_(p.grad) if i in self.velocity else first
                p.sub_(self.lr * self.velocity[i])


@pytest.mark.parametrize("copied", [True, False])
def test_a_velocity_that_is_the_gradient_itself_shows_in_a_run(copied: bool) -> None:
    grads = torch.tensor([[1.0, -2.0], [0.5, 4.0], [-3.0, 0.25]], dtype=torch.float64)
    target = SimpleNamespace(sgd=lambda params, lr: Momentum(params, lr, copied=copied))
    (found,), (kept,) = drive_optimizer(target, [torch.zeros(2).double()], 0.5, optimizer="sgd", grads=[grads])
    velocities = [grads[0], 0.9 * grads[0] + grads[1], 0.9 * (0.9 * grads[0] + grads[1]) + grads[2]]
    expected = -0.5 * torch.stack(velocities).cumsum(0)
    assert torch.equal(found, expected) is copied
    assert torch.equal(kept, grads) is copied
