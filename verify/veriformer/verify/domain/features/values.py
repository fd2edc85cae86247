"""Features of the values of tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch

from veriformer.verify.domain.feature import Arguments, Feature
from veriformer.verify.domain.features.making import Named, demanded, fragile
from veriformer.verify.domain.features.shapes import INTEGERS, TENSORS


def of_values(operation: str) -> Iterator[Feature]:
    """Signs, ties and extremes of every floating tensor; nobody may refuse them, but for inf and NaN."""
    probabilities = {"target"} if operation in ("cross_entropy", "mse_loss") else set()
    for name in (name for name in TENSORS.get(operation, ()) if name not in INTEGERS - probabilities | {"mask"}):
        yield from demanded(operation, *_signs(name))
        yield from fragile(operation, *_extremes(name), optional=False)
        yield from fragile(operation, *_not_finite(name))


def _of(name: str, condition: Callable[[torch.Tensor], bool]) -> Callable[[Arguments], bool]:
    def present(a: Arguments) -> bool:
        x = a[name]
        return bool(x.is_floating_point() and x.numel() and condition(x.detach()))

    return present


def _signs(name: str) -> tuple[Named, ...]:
    return (
        (f"negative values in {name}", _of(name, lambda x: bool((x < 0).any()))),
        (f"{name} of one sign", _of(name, lambda x: x.numel() > 1 and bool((x > 0).all() or (x < 0).all()))),
        (f"zeros in {name}", _of(name, lambda x: bool((x == 0).any()))),
    )


def _extremes(name: str) -> tuple[Named, ...]:
    return (
        (f"constant rows of {name}", _of(name, _constant)),
        (f"{name} all zero", _of(name, lambda x: bool((x == 0).all()))),
        (f"ties in {name}", _of(name, _ties)),
        (f"huge values in {name}", _of(name, _huge)),
        (f"large values in {name}", _of(name, lambda x: bool((_finite(x) > 30).any()))),
        (f"tiny values in {name}", _of(name, _tiny)),
        (f"subnormal values in {name}", _of(name, _subnormal)),
        (f"a mean of {name} far above its spread", _of(name, _offset)),
        (f"rows of {name} far apart", _of(name, lambda x: x.ndim > 1 and _apart(x.amax(-1), x.dtype))),
        (f"entries of {name} far apart", _of(name, lambda x: _apart(x, x.dtype))),
    )


def _not_finite(name: str) -> tuple[Named, ...]:
    return (
        (f"inf in {name}", _of(name, lambda x: bool((x == torch.inf).any()))),
        (f"-inf in {name}", _of(name, lambda x: bool((x == -torch.inf).any()))),
        (f"NaN in {name}", _of(name, lambda x: bool(x.isnan().any()))),
    )


def _finite(x: torch.Tensor) -> torch.Tensor:
    return x[x.isfinite()].abs()


def _constant(x: torch.Tensor) -> bool:
    return x.ndim > 0 and x.shape[-1] > 1 and bool((x == x[..., :1]).all(-1).any())


def _ties(x: torch.Tensor) -> bool:
    rows = x.sort(-1).values
    return x.ndim > 0 and x.shape[-1] > 1 and bool((rows[..., 1:] == rows[..., :-1]).any())


def _huge(x: torch.Tensor) -> bool:
    """So large that a square leaves the range of the dtype."""
    return bool((_finite(x).double() > torch.finfo(x.dtype).max ** 0.5).any())


def _tiny(x: torch.Tensor) -> bool:
    """So small that a square is 0 beside the smallest normal number, and not 0."""
    sizes = _finite(x).double()
    return bool(((sizes > 0) & (sizes < torch.finfo(x.dtype).tiny ** 0.5)).any())


def _subnormal(x: torch.Tensor) -> bool:
    sizes = _finite(x).double()
    return bool(((sizes > 0) & (sizes < torch.finfo(x.dtype).tiny)).any())


def _offset(x: torch.Tensor) -> bool:
    if x.ndim == 0 or x.shape[-1] < 2:
        return False
    rows = x.double()
    return bool((rows.mean(-1).abs() > 8 * rows.std(-1)).any())


def _apart(x: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether two of these are so far apart that the exponential of their difference, or its square, underflows."""
    known = x[x.isfinite()].double()
    return known.numel() > 1 and float(known.max() - known.min()) > -math.log(torch.finfo(dtype).tiny) / 2
