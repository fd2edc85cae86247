"""Arithmetics in which formulas are evaluated.

Running errors over an oracle give references and bounds. PyTorch tensors of one dtype take a formula step by step, and
autograd differentiates it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veriformer.spec.arithmetic import Float, RunningError
from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array, Axis, Raw
from veriformer.verify.contract import dtypes


class TensorArray(Array):
    """Array of `TorchArithmetic`, carried by `tensor`; `value` are its numbers, for questions about exact inputs."""

    __slots__ = ("tensor",)

    def __init__(self, xp: TorchArithmetic, tensor: Tensor) -> None:
        self.xp = xp
        self.tensor = tensor

    @property
    def value(self) -> Raw:  # type: ignore[override]
        """The numbers in float64, which holds every value of the four dtypes exactly."""
        return self.tensor.detach().to("cpu", torch.float64).numpy()

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.tensor.ndim


def _over(axis: Axis, x: Tensor) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(x.ndim))
    return axis if isinstance(axis, tuple) else (axis,)


def _sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    dims = _over(axis, x)
    return x.sum(dims, keepdim=keepdims) if dims else x


def _max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    dims = _over(axis, x)
    if all(x.shape[dim] for dim in dims):
        return x.amax(dims, keepdim=keepdims) if dims else x
    shape = [1 if dim in {d % x.ndim for d in dims} else size for dim, size in enumerate(x.shape)]
    largest = x.new_full(shape, -torch.inf)
    return largest if keepdims else largest.squeeze(dims)


def _cumsum(x: Tensor, axis: int = -1) -> Tensor:
    return x.cumsum(axis)


_FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    **{name: getattr(torch, name) for name in ("add", "subtract", "multiply", "divide", "negative", "absolute")},
    **{name: getattr(torch, name) for name in ("sqrt", "exp", "log", "tanh", "erf", "sin", "cos")},
    **{name: getattr(torch, name) for name in ("maximum", "minimum", "matmul")},
    "sum": _sum,
    "cumsum": _cumsum,
    "max": _max,
}


class TorchArithmetic(Arithmetic):
    """Evaluate a formula over tensors of one floating dtype, which PyTorch rounds each result to.

    rsqrt: whether 1 / √x is PyTorch's ``rsqrt``, whose backward pass takes the third power of the result.
    """

    def __init__(self, dtype: torch.dtype, *, rsqrt: bool = False) -> None:
        self.dtype = dtype
        self.rsqrt = rsqrt
        self._roots: list[tuple[Tensor, Tensor]] = []

    def __repr__(self) -> str:
        return f"TorchArithmetic({self.dtype})"

    def lift(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the arguments of a call: floating tensors into this arithmetic, masks and ids into NumPy arrays."""
        return {name: self._lifted(value) if isinstance(value, Tensor) else value for name, value in arguments.items()}

    def _lifted(self, value: Tensor) -> Any:
        return self.asarray(value) if value.is_floating_point() else value.numpy()

    def asarray(self, x: Any) -> Any:
        """Take a number, an array of numbers or a tensor; arrays of this arithmetic pass unchanged."""
        if isinstance(x, Array):
            return x
        value: Tensor = torch.as_tensor(np.asarray(x, dtype=np.float64)) if not isinstance(x, Tensor) else x
        return TensorArray(self, value.to(self.dtype))

    def apply(self, operation: str, /, *operands: Any, **options: Any) -> Any:
        """Carry out a computing operation of the vocabulary, given by name."""
        values: list[Tensor] = [self.asarray(x).tensor for x in operands]
        value = _FUNCTIONS[operation](*values, **options)
        if self.rsqrt and operation == "sqrt":
            self._roots.append((value, values[0]))
        if self.rsqrt and operation == "divide" and operands[0] == 1:
            value = next((torch.rsqrt(x) for root, x in self._roots if root is values[1]), value)
        return TensorArray(self, value)

    def rearrange(self, move: Callable[..., Any], /, *arrays: Any) -> Any:
        """Apply `move`, which only copies and places entries: to their indices, by which they are then gathered."""
        parts: list[Tensor] = [self.asarray(x).tensor for x in arrays]
        ends = np.cumsum([0, *(part.numel() for part in parts)])
        places = [
            np.arange(start, end).reshape(part.shape)
            for start, end, part in zip(ends[:-1], ends[1:], parts, strict=True)
        ]
        index = torch.as_tensor(np.array(move(*places), dtype=np.int64))
        return TensorArray(self, torch.cat([part.reshape(-1) for part in parts])[index])

    def where(self, mask: Any, a: Any, b: Any) -> Any:
        """Choose by the mask without an index of every entry, as scores have many."""
        chosen = torch.as_tensor(np.array(mask, dtype=bool))
        return TensorArray(self, torch.where(chosen, self.asarray(a).tensor, self.asarray(b).tensor))

    def swapaxes(self, x: Any, i: int, j: int) -> Any:
        """Exchange the axes i and j."""
        return TensorArray(self, self.asarray(x).tensor.swapaxes(i, j))


def dtype_of(arguments: Mapping[str, Any]) -> torch.dtype:
    """Return the dtype of the first floating tensor of a call; the default one for tables, made without tensors."""
    floating = (x.dtype for x in arguments.values() if isinstance(x, Tensor) and x.is_floating_point())
    return next(floating, torch.get_default_dtype())


@functools.cache
def running_error(dtype: str) -> RunningError:
    """Return the running-error arithmetic of a dtype over the exact oracle."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]))


@functools.cache
def over_float64(dtype: str) -> RunningError:
    """Return the running-error arithmetic of a dtype over float64: cheap; fp64 bounds are a bit wider."""
    return RunningError(dtypes.format_of(dtypes.TORCH[dtype]), oracle=Float())
