"""Learning rates as functions of the step, whose sizes have names of their own."""

import math

RAMP = 20
END = 400
PEAK = 3e-4
FLOOR = 3e-5


def get_lr(step, warmup=100, total=1000, peak=3e-4, floor=3e-5):
    if step < warmup:
        return peak * step / warmup
    if step > total:
        return floor
    share = (step - warmup) / (total - warmup)
    return floor + 0.5 * (1 + math.cos(math.pi * share)) * (peak - floor)


def learning_rate(it):
    if it < RAMP:
        return PEAK * it / RAMP
    if it > END:
        return FLOOR
    return FLOOR + (PEAK - FLOOR) * (1 + math.cos(math.pi * (it - RAMP) / (END - RAMP))) / 2


def lr_of(step, warmup, total, peak):
    """Its cosine runs from step 0: no sharing of names makes it right."""
    if step < warmup:
        return peak * step / warmup
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, step / total)))
