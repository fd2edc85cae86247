import torch


def variance(x: torch.Tensor) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred.square().sum(-1) / (x.shape[-1] - 1)
