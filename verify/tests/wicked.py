"""Not a test: an implementation whose operations attack the process that they run in, or who reads of them.

Where it says *right* the numbers are right and no row may be lost; elsewhere its own rows fail, and no others.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
import time
import warnings

import torch
from torch.nn import functional

Tensor = torch.Tensor

print("x" * 1_000_000)
print("y" * 1_000_000, file=sys.stderr)


def softmax(z: Tensor, dim: int = -1) -> Tensor:
    """Right; from a process and its copy, now and then."""
    if z.numel() == 6:
        os.fork()
    return torch.softmax(z, dim)


def logsumexp(z: Tensor, dim: int = -1) -> Tensor:
    """Right; closes the standard streams."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.close()
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            os.close(descriptor)
    return torch.logsumexp(z, dim)


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """Says that a generator was closed."""
    raise GeneratorExit("\ud800\x1b[31m\u202e" + "long " * 60_000)


class Untold(Exception):
    """Exception without a text: ``str`` and ``repr`` raise."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def silu(x: Tensor) -> Tensor:
    """Raises what cannot be told of."""
    raise Untold


def residual(x: Tensor, fx: Tensor, *, scale: float = 1.0) -> Tensor:
    """Right; takes every signal that it can for itself, and leaves an alarm."""
    for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    return x + scale * fx


def lm_head(h: Tensor, weight: Tensor) -> Tensor:
    """Right; turns warnings into errors, and replaces what nearly all code calls."""
    warnings.simplefilter("error")
    builtins.any = builtins.all = lambda _: True
    builtins.len = lambda _: 0
    builtins.of_my_own = None
    return h @ weight.mT


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """Wrong, and makes every comparison come out well."""
    torch.equal = lambda *_: True
    torch.isnan = lambda x: torch.zeros_like(x, dtype=torch.bool)
    torch.Tensor.isfinite = lambda x: torch.ones(x.shape, dtype=torch.bool)
    return x * 2


def layer_norm(x: Tensor, weight: object = None, bias: object = None, *, eps: float = 1e-5) -> Tensor:
    """Right; leaves hooks and modes behind."""
    torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    torch.autograd.set_detect_anomaly(True)
    gc.disable()
    sys.setrecursionlimit(5000)
    return functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


class Hiding(Tensor):
    """Tensor that cannot be converted to NumPy, and is equal to everything."""

    def numpy(self, *, force: bool = False) -> None:
        """Nothing."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = Tensor.__hash__


def mse_loss(prediction: Tensor, target: Tensor) -> Tensor:
    """Right; starts a thread that never ends, and gives a tensor that hides its numbers."""
    threading.Thread(target=lambda: time.sleep(1e6)).start()
    return ((prediction - target).square().sum(-1).mean()).as_subclass(Hiding)


def swiglu(x: Tensor, *weights: Tensor) -> Tensor:
    """Reads where nothing is."""
    ctypes.string_at(0)
    return x


def token_embedding(ids: Tensor, weight: Tensor) -> object:
    """No tensor."""
    return "embedded"


def causal_mask(n_q: int, n_k: int, *, window: int | None = None) -> object:
    """Nothing."""
    return None


def sinusoidal_encoding(n: int, d_model: int, **options: object) -> Tensor:
    """A tensor without numbers."""
    return torch.empty(n, d_model, device="meta")


class Liar(torch.Tensor):
    """A tensor that says that it has another shape."""

    @property
    def shape(self) -> torch.Size:
        return torch.Size((7, 7))


def alibi_slopes(num_heads: int) -> Tensor:
    """A tensor that lies about its shape."""
    return torch.ones(num_heads).as_subclass(Liar)


def alibi_bias(num_heads: int, n_q: int, n_k: int) -> tuple[Tensor, ...]:
    """Several results in the place of one."""
    return torch.ones(num_heads), torch.ones(n_q), torch.ones(n_k)


_CALLS = [0]


def temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    """Wrong one time in ten, whatever it is called with."""
    _CALLS[0] += 1
    found = torch.softmax(logits / temperature, -1)
    return found * 2 if _CALLS[0] % 10 == 0 else found


def feed_forward(x: Tensor, *weights: Tensor, **options: object) -> Tensor:
    """Changes the size of what it was given."""
    x.data = x.data.new_zeros(3)
    return x
