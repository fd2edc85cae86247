"""Not a test: an implementation whose operations are right, and change the state of the process that they run in."""

import os
import tempfile

import torch
from torch.nn import functional

Tensor = torch.Tensor

os.chdir(tempfile.gettempdir())


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """Goes elsewhere."""
    os.chdir("/")
    return torch.softmax(z, dim)


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    """Turns gradients off."""
    found = torch.logsumexp(z, dim)
    torch.set_grad_enabled(False)
    return found


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Changes the default dtype, the threads and the seed."""
    torch.set_default_dtype(torch.float16)
    torch.set_num_threads(3)
    torch.manual_seed(0)
    return functional.gelu(x, approximate=approximate)


def silu(x: Tensor) -> Tensor:
    """Changes variables of the environment that were there, and how PyTorch computes."""
    os.environ["PATH"] = ""
    torch.use_deterministic_algorithms(True)
    return functional.silu(x)


def residual(x: Tensor, fx: Tensor, *, scale: float = 1.0) -> Tensor:
    """Wants the process to end."""
    raise SystemExit(3)


def lm_head(h: Tensor, weight: Tensor) -> Tensor:
    """Says that it was interrupted."""
    raise KeyboardInterrupt


class _Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, g: Tensor) -> Tensor:
        raise SystemExit(2)


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """Wants the process to end in the backward pass."""
    found = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return _Backward.apply(found if weight is None else found * weight)  # type: ignore[no-any-return]


def causal_lm() -> torch.nn.Module:
    """Wants the process to end where it is built."""
    raise SystemExit(0)
