"""Errors that teach: every refusal names the argument, what was expected, what came, and what to do about it."""

import math
import numbers
from collections.abc import Collection, Mapping
from typing import NoReturn

import torch
from torch import Tensor

FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def raise_for(name: str, expected: str, got: object, advice: str, error: type[Exception] = ValueError) -> NoReturn:
    """Raise `error` with the one form of message that the whole package uses."""
    raise error(f"{name}: expected {expected}, got {got}; {advice}")


def tensor(name: str, x: object) -> Tensor:
    """Return `x` if it is a tensor of one of the dtypes in `FLOATING`; otherwise raise `TypeError`."""
    if not isinstance(x, Tensor):
        raise_for(name, "a torch.Tensor", type(x).__name__, "pass a floating-point tensor", TypeError)
    if x.dtype not in FLOATING:
        raise_for(name, "float64, float32, bfloat16 or float16", x.dtype, f"convert it with {name}.to(...)", TypeError)
    return x


def same_dtype_and_device(tensors: Mapping[str, Tensor | None]) -> None:
    """Refuse tensors whose dtype (`TypeError`) or device (`ValueError`) differs from that of the first."""
    present = {name: x for name, x in tensors.items() if x is not None}
    first, *others = present
    for name in others:
        want, have = present[first], present[name]
        if have.dtype != want.dtype:
            raise_for(name, f"{want.dtype}, as {first} has", have.dtype, "convert one of the two first", TypeError)
        if have.device != want.device:
            raise_for(name, f"device {want.device}, where {first} lives", have.device, "move one of the two first")


def dimension(name: str, dim: object, x: Tensor) -> int:
    """Return `dim` if it is an axis of `x`, which has at least one."""
    if x.ndim == 0:
        raise_for(name, "an axis of a tensor of rank 1 or more", "a tensor of rank 0", "reshape it to [1] first")
    axis = integer(name, dim)
    if not -x.ndim <= axis < x.ndim:
        raise_for(name, f"an axis between {-x.ndim} and {x.ndim - 1}", axis, f"the tensor has shape {tuple(x.shape)}")
    return axis


def integer(name: str, value: object, *, minimum: int | None = None) -> int:
    """Return `value` if it is an integer (NumPy's count, bools do not) not below `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral | torch.SymInt):
        raise_for(name, "an integer", f"{value!r} ({type(value).__name__})", "pass an int", TypeError)
    result = int(value)
    if minimum is not None and result < minimum:
        raise_for(name, f"an integer not below {minimum}", result, f"pass {minimum} or more")
    return result


def number(name: str, value: object) -> float:
    """Return `value` as a float if it is a real number (NumPy's count, bools do not) and not NaN."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise_for(name, "a real number", f"{value!r} ({type(value).__name__})", "pass a float", TypeError)
    result = float(value)
    if math.isnan(result):
        raise_for(name, "a real number", "nan", "pass a number that is one")
    return result


def finite(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite number."""
    result = number(name, value)
    if math.isinf(result):
        raise_for(name, "a finite number", result, "pass one")
    return result


def nonnegative(name: str, value: object) -> float:
    """Return `value` as a float if it is a number not below zero."""
    result = number(name, value)
    if result < 0:
        raise_for(name, "a number not below 0", result, "pass 0 or more")
    return result


def probability(name: str, value: object) -> float:
    """Return `value` as a float if it is a number in [0, 1]."""
    result = number(name, value)
    if not 0 <= result <= 1:
        raise_for(name, "a probability in [0, 1]", result, "pass a number between 0 and 1")
    return result


def flag(name: str, value: object) -> bool:
    """Return `value` if it is `True` or `False`."""
    if not isinstance(value, bool):
        raise_for(name, "True or False", f"{value!r} ({type(value).__name__})", "pass a bool", TypeError)
    return value


def positive(name: str, value: object) -> float:
    """Return `value` as a float if it is a finite number above zero."""
    result = finite(name, value)
    if result <= 0:
        raise_for(name, "a number above 0", result, "pass a positive one")
    return result


def choice(name: str, value: object, options: Collection[str]) -> str:
    """Return `value` if it is one of the words in `options`."""
    if not isinstance(value, str) or value not in options:
        raise_for(name, f"one of {', '.join(options)}", repr(value), "choose one of them")
    return value


def integers(name: str, x: object) -> Tensor:
    """Return `x` if it is a tensor of integers, of any width; bools are none."""
    if not isinstance(x, Tensor):
        raise_for(name, "a torch.Tensor of integers", type(x).__name__, "use torch.tensor(...)", TypeError)
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise_for(name, "a tensor of integers", x.dtype, f"convert it with {name}.long()", TypeError)
    return x


def generator(name: str, value: object, device: torch.device) -> torch.Generator | None:
    """Return `value` if it is None or a generator that can draw on `device`."""
    if value is None:
        return None
    if not isinstance(value, torch.Generator):
        raise_for(name, "a torch.Generator or None", type(value).__name__, "make one", TypeError)
    if value.device.type != device.type and device.type != "meta":
        raise_for(name, f"a generator on {device.type}", value.device, "make one with torch.Generator(device)")
    return value


def can_read_values(x: Tensor) -> bool:
    """Tell whether Python may look at the values of `x`: not on meta or fake tensors, under `vmap` or in a compiler."""
    if torch.compiler.is_compiling() or x.is_meta or type(x) not in (Tensor, torch.nn.Parameter):
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(x)
