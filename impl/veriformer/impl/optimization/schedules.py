"""Learning rates over time, as functions of the step."""

import math

from veriformer.impl import checks


def warmup(step: int, *, max_lr: float, warmup_steps: int) -> float:
    r"""Return the learning rate of a linear warmup.

    $$\eta_t = \eta_{\max} \cdot \min(t / T_w, 1)$$

    Steps count from 0, where the rate is 0; without steps of warmup it is `max_lr` at once. Raises `ValueError` for
    negative arguments, `TypeError` for what is no int or no number. Equation 10.
    """
    t, T_w = checks.integer("step", step, minimum=0), checks.integer("warmup_steps", warmup_steps, minimum=0)
    return checks.nonnegative("max_lr", max_lr) * (t / T_w if t < T_w else 1.0)


def warmup_cosine(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    r"""Return the learning rate of a linear warmup to `max_lr` and half a cosine from there to 0.

    $$\eta_t = \eta_{\max} \cdot \tfrac12 \Big(1 + \cos \pi \frac{t - T_w}{T - T_w}\Big)
      = \eta_{\max} \sin^2 \frac{\pi}{2} \frac{T - t}{T - T_w} \quad \text{for } T_w \le t \le T$$

    Before that it is `warmup`, and from step `total_steps` on exactly 0. The sine keeps its digits near the end, where
    1 + cos cancels. Raises `ValueError` for negative arguments and `total_steps < warmup_steps`, `TypeError` for what
    is no int or no number. Documents 000 and 001, section 9.3.
    """
    rising = warmup(step, max_lr=max_lr, warmup_steps=warmup_steps)
    t, T_w, T = int(step), int(warmup_steps), checks.integer("total_steps", total_steps)
    if T_w > T:
        checks.raise_for("total_steps", f"at least warmup_steps={T_w}", T, "the warmup is part of the training")
    if t >= T:
        return 0.0
    if t < T_w:
        return rising
    return rising * math.sin(0.5 * math.pi * ((T - t) / (T - T_w))) ** 2


def noam(step: int, *, d_model: int, warmup_steps: int) -> float:
    r"""Return the learning rate of the original Transformer.

    $$\eta_t = d^{-1/2} \cdot \min(t^{-1/2},\ t \cdot T_w^{-3/2})$$

    Steps count from 1; the largest rate, $(d\, T_w)^{-1/2}$, is that of step `warmup_steps`. Raises `ValueError` for
    arguments below 1, `TypeError` for what is no int. Documents 000 and 001, section 9.3.
    """
    t = checks.integer("step", step, minimum=1)
    d, T_w = checks.integer("d_model", d_model, minimum=1), checks.integer("warmup_steps", warmup_steps, minimum=1)
    return min(1 / math.sqrt(t), t / (T_w * math.sqrt(T_w))) / math.sqrt(d)
