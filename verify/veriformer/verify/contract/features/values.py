"""Features of the values of tensors."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from veriformer.spec.operations.call import Floats, Integers
from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Named, demanded, fragile
from veriformer.verify.contract.features.shapes import tensors

CHOOSING = frozenset({"top_k_filter", "top_p_filter", "greedy", "expected_calibration_error"})
"""Operations in which larger values are chosen among others: for these alone, ties are degenerate input."""


def of_values(operation: str) -> Iterator[Feature]:
    """Yield the features of signs, ties and extremes of every floating tensor; only inf and NaN may be refused."""
    for name, tensor in tensors(operation).items():
        if not (isinstance(tensor, Floats) or (isinstance(tensor, Integers) and tensor.probabilities)):
            continue
        yield from demanded(operation, *_signs(name))
        ties: Named = (f"ties in {name}", _of(name, lambda f: _ties(f.x)))
        yield from fragile(operation, ties, optional=False) if operation in CHOOSING else demanded(operation, ties)
        yield from fragile(operation, *_extremes(name), optional=False)
        rows = _of_rows(name)  # those of parameters are nothing special: gains of ones, a bias of two entries
        yield from demanded(operation, *rows) if tensor.learned else fragile(operation, *rows, optional=False)
        yield from fragile(operation, *_not_finite(name))


@dataclass
class Facts:
    """Lazily computed statistics of the values of a floating tensor."""

    x: torch.Tensor

    @cached_property
    def known(self) -> torch.Tensor:
        """Finite values, flattened."""
        finite = self.x.isfinite()
        return self.x.reshape(-1) if bool(finite.all()) else self.x[finite]

    @cached_property
    def largest(self) -> float:
        """Largest magnitude of a finite value; 0 without any."""
        return float(self.known.abs().max()) if self.known.numel() else 0.0

    @cached_property
    def least(self) -> float:
        """Smallest nonzero magnitude of a finite value; infinite without any."""
        sizes = self.known.abs()
        return float(torch.where(sizes > 0, sizes, torch.inf).min()) if sizes.numel() else math.inf

    @property
    def square_root_of_tiny(self) -> float:
        """√tiny of the dtype: squares of smaller numbers are subnormal."""
        return float(torch.finfo(self.x.dtype).tiny ** 0.5)


_FACTS: dict[int, Facts] | None = None


@contextlib.contextmanager
def cache_facts() -> Iterator[None]:
    """Cache the facts of tensors within the context, in which no tensor may change."""
    global _FACTS
    before, _FACTS = _FACTS, {}
    try:
        yield
    finally:
        _FACTS = before


def facts(x: torch.Tensor) -> Facts:
    """Return the facts of a tensor, from the cache within ``cache_facts``."""
    if _FACTS is None:
        return Facts(x.detach())
    if id(x) not in _FACTS:
        _FACTS[id(x)] = Facts(x.detach())
    return _FACTS[id(x)]


def _of(name: str, condition: Callable[[Facts], bool]) -> Callable[[Arguments], bool]:
    def present(a: Arguments) -> bool:
        x = a[name]
        return bool(x.is_floating_point() and x.numel() and condition(facts(x)))

    return present


def _signs(name: str) -> tuple[Named, ...]:
    return (
        (f"negative values in {name}", _of(name, lambda f: bool((f.x < 0).any()))),
        (f"{name} of one sign", _of(name, lambda f: f.x.numel() > 1 and bool((f.x > 0).all() or (f.x < 0).all()))),
        (f"zeros in {name}", _of(name, lambda f: bool((f.x == 0).any()))),
    )


def _extremes(name: str) -> tuple[Named, ...]:
    return (
        (f"{name} all zero", _of(name, lambda f: bool((f.x == 0).all()))),
        (f"huge values in {name}", _of(name, _huge)),
        (f"large values in {name}", _of(name, lambda f: f.largest > LARGE)),
        (f"tiny values in {name}", _of(name, lambda f: f.least < f.square_root_of_tiny)),
        (f"subnormal values in {name}", _of(name, lambda f: f.least < torch.finfo(f.x.dtype).tiny)),
        (f"rows of {name} far apart", _of(name, lambda f: f.x.ndim > 1 and _apart(Facts(f.x.amax(-1))))),
        (f"entries of {name} far apart", _of(name, _apart)),
    )


def _of_rows(name: str) -> tuple[Named, ...]:
    return (
        (f"constant rows of {name}", _of(name, lambda f: _constant(f.x))),
        (f"a mean of {name} far above its spread", _of(name, lambda f: _offset(f.x))),
    )


def _not_finite(name: str) -> tuple[Named, ...]:
    return (
        (f"inf in {name}", _of(name, lambda f: bool((f.x == torch.inf).any()))),
        (f"-inf in {name}", _of(name, lambda f: bool((f.x == -torch.inf).any()))),
        (f"NaN in {name}", _of(name, lambda f: bool(f.x.isnan().any()))),
    )


def _constant(x: torch.Tensor) -> bool:
    return x.ndim > 0 and x.shape[-1] > 1 and bool((x == x[..., :1]).all(-1).any())


SORTED = 2**16
"""Number of entries that are sorted to find ties: of larger tensors, the first rows."""


def _ties(x: torch.Tensor) -> bool:
    if x.ndim == 0 or x.shape[-1] < 2:
        return False
    rows = x.reshape(-1, x.shape[-1])[: max(1, SORTED // x.shape[-1])].sort(-1).values
    return bool((rows[..., 1:] == rows[..., :-1]).any())


LARGE = 30.0
"""Magnitude from which a number is large: products of a few such leave the range of half precision."""


def is_moderate(f: Facts) -> bool:
    """Return whether all numbers are finite, none is large, and no square of one is subnormal."""
    return f.known.numel() == f.x.numel() and f.largest <= LARGE and f.least >= f.square_root_of_tiny


def _huge(f: Facts) -> bool:
    """Return whether the square of the largest magnitude overflows the dtype."""
    return f.largest > float(torch.finfo(f.x.dtype).max ** 0.5)


def _offset(x: torch.Tensor) -> bool:
    if x.ndim == 0 or x.shape[-1] < 2:
        return False
    rows = x.double()
    return bool((rows.mean(-1).abs() > 8 * rows.std(-1)).any())


def _apart(f: Facts) -> bool:
    """Return whether two values are so far apart that exp of their difference, or its square, underflows."""
    if f.known.numel() < 2:
        return False
    return float(f.known.max()) - float(f.known.min()) > -math.log(torch.finfo(f.x.dtype).tiny) / 2
