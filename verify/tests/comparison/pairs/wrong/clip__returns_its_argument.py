import torch


def clip(x: torch.Tensor) -> torch.Tensor:
    return x if bool((x.abs() <= 50.0).all()) else x.clamp(-50.0, 50.0)
