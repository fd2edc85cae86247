"""PyTorch's optimizers under the contract's names: ``torch.optim`` in its ``foreach`` form, and what it claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.targets.argument_validation import RawOp

# The averages have the dtype of the parameters: in fp16 squares overflow, and an ε of 1e-8 is 0.
DTYPES = {"adam": ["fp64", "fp32", "bf16"], "adamw": ["fp64", "fp32", "bf16"]}
# SGD: "for the first step the momentum buffer is set to the gradient", which is not damped.
CONVENTIONS = {"sgd.first_velocity": "gradient"}
NOT_PROVIDED = {
    "warmup": "LinearLR starts at a factor above 0",
    "warmup_cosine": "CosineAnnealingLR rises again past its end",
    "noam": "torch.optim.lr_scheduler has no such schedule",
    "accumulate_gradients": "PyTorch accumulates in p.grad, and leaves the counting to its caller",
}


def _gradient_descent(params: Sequence[Tensor], lr: float) -> Any:
    return torch.optim.SGD(params, lr, foreach=True)


def _sgd_momentum(params: Sequence[Tensor], lr: float, *, beta: float) -> Any:
    """``dampening`` is the share of each gradient, but for the first, that is left out."""
    return torch.optim.SGD(params, lr, momentum=beta, dampening=beta, foreach=True)


def _adam(params: Sequence[Tensor], lr: float, **options: Any) -> Any:
    return torch.optim.Adam(params, lr, foreach=True, **options)


def _adamw(params: Sequence[Tensor], lr: float, **options: Any) -> Any:
    return torch.optim.AdamW(params, lr, foreach=True, **options)


RAW_OPS: dict[str, RawOp] = {
    "gradient_descent": _gradient_descent,
    "sgd_momentum": _sgd_momentum,
    "adam": _adam,
    "adamw": _adamw,
}
