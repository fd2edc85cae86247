"""The evidence of a counterexample: its call, and the worst entry of the result."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from veriformer.verify.results.foreign import one_line

FEW = 6
"""Numbers up to which a tensor is shown with its values; a larger one by its shape."""


@dataclass(frozen=True)
class Element:
    """A judged number: its place, the observed and the exact value, the bound on their distance, and the ratio."""

    place: str
    observed: Any
    exact: Any
    bound: Any
    ratio: float


def elements(example: Mapping[str, Any]) -> list[Element]:
    """Return the judged numbers, the worst first; none where the violation is not one of numbers."""
    observed, true, bound = (dict(_leaves(example.get(name))) for name in ("observed", "exact", "bound"))
    if example.get("exact") is None or example.get("bound") is None or observed.keys() != true.keys():
        return []
    if bound.keys() == {""}:
        bound = dict.fromkeys(observed, bound[""])
    if not observed or bound.keys() != observed.keys():
        return []
    found = [Element(p, observed[p], true[p], bound[p], ratio(observed[p], true[p], bound[p])) for p in observed]
    return sorted(found, key=lambda element: -element.ratio)


def ratio(observed: Any, true: Any, bound: Any) -> float:
    """Return |observed − true| / bound; infinite for what is no number, 0 where the bound lets everything pass."""
    try:
        a, b, limit = float(observed), float(true), float(bound)
    except (TypeError, ValueError):
        return float("inf")
    if a == b or limit == float("inf"):
        return 0.0
    error = abs(a - b)
    if error != error:
        return float("inf")
    return error / limit if limit else float("inf")


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{place}, {index}" if place else str(index))
    else:
        yield place, value


def is_tensor(value: object) -> bool:
    """Return whether an argument is a tensor as results.json writes them."""
    return isinstance(value, Mapping) and {"dtype", "shape", "values"} <= value.keys()


def call(example: Mapping[str, Any], limit: int) -> str:
    """Return the arguments of the call on one line; large tensors by their shape."""
    return one_line(", ".join(_argument(*item) for item in (example.get("arguments") or {}).items()), limit)


def _argument(name: str, value: Any) -> str:
    if not is_tensor(value):
        return f"{name} = {one_line(repr(value), 60)}"
    flat = [leaf for _, leaf in _leaves(value["values"])]
    if len(flat) <= FEW:
        numbers = json.dumps(value["values"]).replace('"', "")  # NaN and infinities are strings in results.json
        return f"{name} = {numbers} ({value['dtype']})"
    return f"{name}: {value['dtype']} {list(value['shape'])}"
