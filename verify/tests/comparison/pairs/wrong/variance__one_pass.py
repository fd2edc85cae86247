import torch


def variance(x: torch.Tensor) -> torch.Tensor:
    n = x.shape[-1]
    return (x.square().mean(-1) - x.mean(-1).square()) * n / (n - 1)
