import torch


def clip(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(-50.0, 50.0)


def get_inputs():
    return [torch.rand(12, 40)]
