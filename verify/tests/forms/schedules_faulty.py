"""Schedules of schedules.py, each with one fault."""

import math

from torch.optim.lr_scheduler import LambdaLR, LRScheduler


def get_cosine_schedule_with_warmup(optimizer, num_warmup_steps, num_training_steps, num_cycles=0.5, last_epoch=-1):
    def share(step):
        if step < num_warmup_steps:
            return step / max(1, num_warmup_steps)
        if step >= num_training_steps:
            return 0.0
        progress = step / max(1, num_training_steps - num_warmup_steps)
        return 0.5 * (1.0 + math.cos(math.pi * num_cycles * 2.0 * progress))

    return LambdaLR(optimizer, share, last_epoch)


class LinearWarmupLR(LRScheduler):
    def __init__(self, optimizer, warmup_steps, last_epoch=-1):
        self.warmup_steps = warmup_steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        share = min(1.0, self.last_epoch / self.warmup_steps**2) if self.warmup_steps else 1.0
        return [base * share for base in self.base_lrs]


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer, self._step = optimizer, 0
        self.warmup, self.factor, self.model_size = warmup, factor, model_size

    def step(self):
        self._step += 1
        rate = min(self._step**-0.5, self._step * self.warmup**-1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = self.factor * self.model_size**-0.5 * rate
        self.optimizer.step()
