"""Sampling temperature."""


def temperature_scale(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    z = logits.double()
    z = (z - z.amax(-1, keepdim=True)) / temperature
    p = z.exp()
    return (p / p.sum(-1, keepdim=True)).to(logits.dtype)
