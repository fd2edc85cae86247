"""Sampling temperature."""


def temperature_scale(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    z = (logits - logits.amax(-1, keepdim=True)) * temperature
    p = z.exp()
    return p / p.sum(-1, keepdim=True)
