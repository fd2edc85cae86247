"""Operations that bring their own derivative."""

from typing import cast

import torch
from torch import Tensor


def apply_autograd_function(function: type[torch.autograd.Function], *arguments: object) -> Tensor:
    """Call an autograd function that returns one tensor; PyTorch leaves its own `apply` without types."""
    return cast(Tensor, function.apply(*arguments))  # type: ignore[no-untyped-call]
