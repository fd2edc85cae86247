"""Not a test: an implementation in which each operation misbehaves in its own way, and softmax is right."""

import contextlib
import os
import time

import torch

Tensor = torch.Tensor


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """Right, with the refusals of the contract."""
    if not isinstance(z, Tensor) or not z.is_floating_point():
        raise TypeError(f"z: expected a floating-point tensor, got {type(z).__name__}")
    if isinstance(dim, bool) or not hasattr(dim, "__index__") or not -z.ndim <= dim < z.ndim:
        raise ValueError(f"dim: expected an axis of z, got {dim!r}")
    if z.shape[dim] == 0:
        raise ValueError("z: expected a value to normalise over, got an empty axis along dim")
    return torch.softmax(z, int(dim))


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    """Sleeps for ever, deaf to everything."""
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(1e6)


def cross_entropy(logits: Tensor, target: Tensor, **options: object) -> Tensor:
    """Ends the process."""
    os._exit(7)


def perplexity(logits: Tensor, target: Tensor, **options: object) -> Tensor:
    """Allocates 100 GiB."""
    return torch.ones(100 * 2**28)


def layer_norm(x: Tensor, weight: object = None, bias: object = None, *, eps: float = 1e-5) -> Tensor:
    """Returns NaN."""
    return x * float("nan")


def rms_norm(x: Tensor, weight: object = None, *, eps: float = 1e-6) -> Tensor:
    """Returns the wrong shape."""
    return x.sum()


def clip_grad_norm(grads: list[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Modifies its input."""
    norm = torch.linalg.vector_norm(torch.cat([g.flatten() for g in grads]).double()) if grads else torch.zeros(())
    scale = min(1.0, max_norm / float(norm)) if float(norm) else 1.0
    for g in grads:
        g.mul_(scale)
    return grads, norm.to(torch.float32)


def causal_mask(n_q: int, n_k: int, *, window: int | None = None) -> Tensor:
    """Returns the wrong dtype."""
    return torch.ones(n_q, n_k).tril(n_k - n_q)


def attention(q: Tensor, k: Tensor, v: Tensor, **options: object) -> Tensor:
    """Sleeps for ever, but can be woken."""
    time.sleep(1e6)
    return q
