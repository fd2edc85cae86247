import math

import torch


def gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * torch.erfc(-x * math.sqrt(0.5))
