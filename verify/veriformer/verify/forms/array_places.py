"""Places where a layer over NumPy arrays holds its weights and their gradients: attributes, dictionaries, holders."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_VALUE = ("data", "value", "val", "weight", "array")
"""Attributes by which an object of one weight holds the weight; its gradient stands beside it."""

_OF_GRADIENT = re.compile(r"grad(ient)?s?|deriv(ative)?s?")
_DIFFERENTIAL = ("dld", "dl", "djd", "dj", "dlossd", "dloss", "delta", "d")


@dataclass(frozen=True)
class Place:
    """A place of an array. layer: whose it is, with others; name: among these; holder: the object, or the dictionary,
    that holds it under a key."""

    layer: Any
    name: str
    holder: Any
    key: Any

    def array(self) -> Any:
        """Return the array that is held now."""
        return self.holder[self.key] if isinstance(self.holder, dict) else getattr(self.holder, self.key)

    def put(self, array: Any) -> None:
        """Hold another array."""
        if isinstance(self.holder, dict):
            self.holder[self.key] = array
        else:
            setattr(self.holder, self.key, array)

    def is_gradient_of(self, other: Place) -> bool:
        """Return whether it is by its name and shape the gradient of another place."""
        if self.layer is not other.layer or self.array().shape != other.array().shape:
            return False
        said, own = _OF_GRADIENT.sub("", _letters(self.name)), _letters(other.name)
        marked = said != _letters(self.name)
        return (marked and said == own) or any(said == f"{prefix}{own}" for prefix in _DIFFERENTIAL)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def weights_of(layer: Any) -> list[Place]:
    """Return the places of a layer's own arrays that are no gradients, in the order in which it holds them."""
    return [place for place in _places(layer) if not _is_gradient(place.name)]


def _is_gradient(name: str) -> bool:
    short = re.match(r"d[A-Z_]|d[wb]\d*$", name)
    return short is not None or _OF_GRADIENT.search(name.lower()) is not None


def gradient_of(weight: Place) -> Any:
    """Return what a layer holds as the gradient of one of its weights; None where it holds nothing such."""
    found = (place for place in _places(weight.layer) if place.name != weight.name and place.is_gradient_of(weight))
    return next((place.array() for place in found), None)


def parts_of(layer: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that a layer holds, by names: those of lists by their numbers."""
    for name, x in list(vars(layer).items()):
        if isinstance(x, list | tuple):
            yield from ((f"{name}_{i}", one) for i, one in enumerate(x) if _is_object(one))
        elif isinstance(x, dict):
            yield from ((str(key), one) for key, one in x.items() if _is_object(one))
        elif _is_object(x) and _weight_attribute(x) is None:
            yield name, x


def _is_object(x: Any) -> bool:
    """Return whether it is an object of a class that somebody wrote in Python, with attributes."""
    return (
        hasattr(x, "__dict__")
        and not isinstance(x, type)
        and not callable(getattr(x, "__code__", None))
        and (type(x).__module__.partition(".")[0] not in ("numpy", "builtins", "torch", "functools"))
    )


def _places(layer: Any) -> Iterator[Place]:
    for name, x in list(vars(layer).items()):
        if _is_array(x):
            yield Place(layer, name, layer, name)
        elif isinstance(x, dict):
            before = f"{name}_" if _is_gradient(name) else ""
            yield from (Place(layer, f"{before}{key}", x, key) for key, one in list(x.items()) if _is_array(one))
        elif _is_object(x) and (value := _weight_attribute(x)) is not None:
            yield Place(layer, name, x, value)
            others = (other for other, one in vars(x).items() if other != value and _is_array(one))
            yield from (Place(layer, f"{name}_{other}", x, other) for other in others)


def _weight_attribute(x: Any) -> str | None:
    """Return the attribute by which an object of one weight holds it; None for other objects."""
    return next((name for name in _VALUE if _is_array(getattr(x, "__dict__", {}).get(name))), None)


def _is_array(x: Any) -> bool:
    numpy = importlib.import_module("numpy")
    return isinstance(x, numpy.ndarray) and x.dtype.kind == "f" and x.ndim > 0
