"""Errors that teach: every refusal names the argument, what was expected, what came, and what to do about it."""

import math
import numbers
from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor

FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def refuse(name: str, expected: str, got: object, advice: str, error: type[Exception] = ValueError) -> NoReturn:
    """Raise `error` with the one form of message that the whole package uses."""
    raise error(f"{name}: expected {expected}, got {got}; {advice}")


def tensor(name: str, x: Any) -> Tensor:
    """Return `x` if it is a tensor of one of the dtypes in `FLOATING`; otherwise raise `TypeError`."""
    if not isinstance(x, Tensor):
        refuse(name, "a torch.Tensor", type(x).__name__, "pass a floating-point tensor", TypeError)
    if x.dtype not in FLOATING:
        refuse(name, "float64, float32, bfloat16 or float16", x.dtype, f"convert it with {name}.to(...)", TypeError)
    return x


def alike(tensors: Mapping[str, Tensor | None]) -> None:
    """Refuse tensors whose dtype (`TypeError`) or device (`ValueError`) differs from that of the first."""
    present = {name: x for name, x in tensors.items() if x is not None}
    first, *others = present
    for name in others:
        want, have = present[first], present[name]
        if have.dtype != want.dtype:
            refuse(name, f"{want.dtype}, as {first} has", have.dtype, "convert one of the two first", TypeError)
        if have.device != want.device:
            refuse(name, f"device {want.device}, where {first} lives", have.device, "move one of the two first")


def dimension(name: str, dim: Any, x: Tensor) -> int:
    """Return `dim` if it is an axis of `x`, which has at least one."""
    if x.ndim == 0:
        refuse(name, "an axis of a tensor of rank 1 or more", "a tensor of rank 0", "reshape it to [1] first")
    dim = integer(name, dim)
    if not -x.ndim <= dim < x.ndim:
        refuse(name, f"an axis between {-x.ndim} and {x.ndim - 1}", dim, f"the tensor has shape {tuple(x.shape)}")
    return dim


def integer(name: str, value: Any, *, minimum: int | None = None) -> int:
    """Return `value` if it is an integer (NumPy's count, bools do not) not below `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral | torch.SymInt):
        refuse(name, "an integer", f"{value!r} ({type(value).__name__})", "pass an int", TypeError)
    if minimum is not None and value < minimum:
        refuse(name, f"an integer not below {minimum}", value, f"pass {minimum} or more")
    return value if isinstance(value, torch.SymInt) else int(value)  # type: ignore[return-value]


def number(name: str, value: Any) -> float:
    """Return `value` as a float if it is a real number (NumPy's count, bools do not) and not NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        refuse(name, "a real number", f"{value!r} ({type(value).__name__})", "pass a float", TypeError)
    if math.isnan(value):
        refuse(name, "a real number", "nan", "pass a number that is one")
    return float(value)


def finite(name: str, value: Any) -> float:
    """Return `value` as a float if it is a finite number."""
    value = number(name, value)
    if math.isinf(value):
        refuse(name, "a finite number", value, "pass one")
    return value


def nonnegative(name: str, value: Any) -> float:
    """Return `value` as a float if it is a number not below zero."""
    value = number(name, value)
    if value < 0:
        refuse(name, "a number not below 0", value, "pass 0 or more")
    return value


def probability(name: str, value: Any) -> float:
    """Return `value` as a float if it is a number in [0, 1]."""
    value = number(name, value)
    if not 0 <= value <= 1:
        refuse(name, "a probability in [0, 1]", value, "pass a number between 0 and 1")
    return value


def flag(name: str, value: Any) -> bool:
    """Return `value` if it is `True` or `False`."""
    if not isinstance(value, bool):
        refuse(name, "True or False", f"{value!r} ({type(value).__name__})", "pass a bool", TypeError)
    return value


def readable(x: Tensor) -> bool:
    """Tell whether Python may look at the values of `x`: not on meta or fake tensors, under `vmap` or in a compiler."""
    if torch.compiler.is_compiling() or x.is_meta or type(x) not in (Tensor, torch.nn.Parameter):
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(x)
