"""Learning rates of two recipes."""

import math


def warmup_cosine(step, *, max_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * step / warmup_steps
    if step >= total_steps:
        return 0.0
    progress = step / total_steps
    return max_lr * 0.5 * (1.0 + math.cos(math.pi * progress))


def noam(step, *, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)
