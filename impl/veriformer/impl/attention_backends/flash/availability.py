"""Availability of Triton's kernels, and what to do where they cannot run."""

import importlib.util
import os

import torch
from torch import Tensor


class UnavailableError(RuntimeError):
    """Triton's kernels cannot run here; the message says what to install or to set."""


def interpreting() -> bool:
    """Tell whether Triton is asked to interpret kernels, which needs no GPU; it looks when kernels are imported."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "yes", "on")


def installed() -> bool:
    """Tell whether the package `triton` is there."""
    return importlib.util.find_spec("triton") is not None


def require(device: torch.device | None = None) -> None:
    """Raise `UnavailableError` unless kernels can run on `device`, or, for None, on any device at all."""
    if not installed():
        raise UnavailableError("triton: expected the package, got none; install it with pip install 'veriformer[gpu]'")
    if interpreting() or (torch.cuda.is_available() and (device is None or device.type == "cuda")):
        return
    got = f"tensors on {device}" if device is not None and torch.cuda.is_available() else "none"
    advice = "move the tensors to a GPU, or set TRITON_INTERPRET=1 before Python starts to interpret on the CPU"
    raise UnavailableError(f"triton: expected a CUDA device, got {got}; {advice}")


def launchable(x: Tensor) -> bool:
    """Tell whether a kernel may be given `x`: meta and fake tensors, and those under `vmap`, have no memory to read."""
    if torch.compiler.is_compiling():
        return not x.is_meta
    plain = type(x) in (Tensor, torch.nn.Parameter)
    return plain and not x.is_meta and not torch._C._functorch.is_functorch_wrapped_tensor(x)
