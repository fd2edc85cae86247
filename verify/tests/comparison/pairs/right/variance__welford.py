import torch


def variance(x: torch.Tensor) -> torch.Tensor:
    mean = x[..., 0]
    total = torch.zeros_like(mean)
    for n in range(1, x.shape[-1]):
        delta = x[..., n] - mean
        mean = mean + delta / (n + 1)
        total = total + delta * (x[..., n] - mean)
    return total / (x.shape[-1] - 1)
