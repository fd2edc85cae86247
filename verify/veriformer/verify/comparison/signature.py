"""Arguments for a function of which nothing but its signature is known: shapes and kinds that it takes."""

from __future__ import annotations

import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

_SHAPES = ((2, 3, 8, 16), (2, 8, 16), (8, 16), (16,), (16, 16), ())
_WHOLE = frozenset(
    ["ids", "input_ids", "idx", "index", "indices", "tokens", "target", "targets", "label", "labels", "y_true"]
)
_TRUTH = frozenset(["mask", "attn_mask", "attention_mask", "key_padding_mask", "padding_mask"])


def guessed(function: Callable[..., Any] | None, seconds: float) -> Callable[[], Any] | None:
    """A function that draws arguments that this one takes; None where none of those tried was taken."""
    until = time.monotonic() + seconds
    for make in _tried(function) if function is not None else ():
        if time.monotonic() > until:
            return None
        try:
            with torch.random.fork_rng(devices=[]):
                function(*make())  # type: ignore[misc]
        except Exception:  # refused: the next
            continue
        return make
    return None


def _tried(function: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    wanted = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    kinds = [_kind(p) for p in wanted]
    count = sum(kind == "tensor" for kind in kinds)
    mixed = itertools.product(_SHAPES, repeat=count) if 1 < count <= 3 else ()
    for shapes in itertools.chain((((shape,) * count) for shape in _SHAPES), mixed):
        yield _maker(kinds, tuple(shapes))


def _kind(parameter: inspect.Parameter) -> str:
    said = str(parameter.annotation)
    if parameter.annotation is int or said == "int":
        return "int"
    if parameter.annotation is float or said == "float":
        return "float"
    if parameter.annotation is bool or said == "bool":
        return "bool"
    return "whole" if parameter.name in _WHOLE else "truth" if parameter.name in _TRUTH else "tensor"


def _maker(kinds: list[str], shapes: tuple[tuple[int, ...], ...]) -> Callable[[], Any]:
    leading = shapes[0] if shapes else _SHAPES[1]

    def make() -> list[Any]:
        left = iter(shapes)
        made: list[Any] = []
        for kind in kinds:
            if kind == "tensor":
                made.append(torch.randn(next(left)))
            elif kind == "whole":
                made.append(torch.randint(0, max(1, leading[-1] if leading else 1), leading[:-1]))
            elif kind == "truth":
                made.append(torch.rand(leading) < 0.7)
            else:
                made.append({"int": 2, "float": 0.5, "bool": True}[kind])
        return made

    return make
