"""The formulas of optimizers under a claimed convention bound every way to follow it."""

import numpy as np

from veriformer.verify.judging.arithmetic import running_error
from veriformer.verify.operations.optimization.optimizer_formulas import sgd_momentum


def test_a_velocity_that_starts_at_the_first_gradient_may_round_on_its_way():
    xp, gradients = running_error("fp32"), np.random.default_rng(0).uniform(0.5, 1.0, 1000).astype(np.float32)
    lifted = {"params": [xp.asarray(gradients)], "grads": [xp.asarray(gradients[None])]}
    exact, bound = xp.judgeable(sgd_momentum(xp, lifted | {"lr": 1.0, "first_velocity": "gradient"})[0])
    left = gradients - (np.float32(0.9) * gradients + np.float32(1 - 0.9) * gradients)
    assert left.any()
    assert (abs(left - exact[0]) <= bound[0]).all()
