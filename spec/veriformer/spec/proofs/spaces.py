r"""Spaces of symbols in LaTeX, such as \mathbb{R}_{\ge 0}^{n \times d}: read, and compared with values.

A space fits values if it holds all of them and none that is much smaller does: reals that are no whole numbers, signs
that occur, and axes whose letters are one size each in all arrays of a draw.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.proofs.latex_parser import relations
from veriformer.spec.proofs.latex_reader import at_top, spoken
from veriformer.spec.proofs.latex_values import UnreadableError

Sizes = Mapping[str, int]


class MisfitError(ValueError):
    """A space that is not that of the values."""


@dataclass(frozen=True)
class Mapped:
    """Values of a function: what was put in, and what came out."""

    inputs: Any
    outputs: Any


@dataclass(frozen=True)
class Space:
    """Space of an argument: the set of its entries, and the sizes of its last axes, in LaTeX."""

    entries: str
    axes: tuple[str, ...] = ()


_SPACE = re.compile(r"(.*?)(?:\^(\w|\{.*\}))?")
_NUMBERS = re.compile(r"\\mathbb\{([RNZ])\}(_0|_\{(?:\\ge|>) ?0\}|)")
_INTERVAL = re.compile(r"([\[(])(.*), (.*)([\])])")


def spaces(name: str, space: str) -> Iterable[tuple[str, str]]:
    """Return the symbols of a line with the space of each: one for all of them, or one for each."""
    names, places = at_top(name), at_top(space)
    if len(places) != len(names):
        places = [space] * len(names)
    return [(spoken(n.strip()), s.strip()) for n, s in zip(names, places, strict=True)]


def read(space: str) -> Space:
    """Read the parts of a space that is no set of functions."""
    found = _SPACE.fullmatch(space)
    entries, power = (found[1], found[2] or "") if found else (space, "")
    return Space(entries, tuple(power.removeprefix("{").removesuffix("}").split(r" \times ")) if power else ())


def sizes_of(space: str, value: Any, known: dict[str, int]) -> None:
    """Learn the sizes that single letters have in the last axes of a value; a letter has one size."""
    for axis, size in _axes(space, value):
        if not (axis.isdigit() or re.search(r"[-+/() ]", re.sub(r"\\text\{\w+\}", "", axis))):
            _agree(axis, size, known.setdefault(spoken(axis), size))


def fits(space: str, draws: Sequence[tuple[Any, Sizes]]) -> None:
    """Raise where a space is not that of the values, each with the sizes of its draw."""
    source, arrow, target = space.partition(r" \to ")
    if arrow:
        fits(source, [(value.inputs, sizes) for value, sizes in draws])
        fits(target, [(value.outputs, sizes) for value, sizes in draws])
        return
    if r"\Sigma" in space:
        if not all(_spelled(space, value) for value, _ in draws):
            raise MisfitError(f"{space}: got {draws[0][0]!r}")
        return
    for value, sizes in draws:
        for axis, size in _axes(space, value):
            _agree(axis, size, _evaluated(axis, sizes))
    entries = read(space).entries
    if entries.startswith(r"\{"):
        bad = [set(_numbers(v)) - set(_listed(entries, sizes)) for v, sizes in draws]
        if any(bad):
            raise MisfitError(f"{entries}: got {max(bad, key=len)}")
        return
    numbers = np.concatenate([_numbers(value) for value, _ in draws])
    if not _tight(entries, numbers):
        raise MisfitError(f"{entries}: got values from {numbers.min()} to {numbers.max()}")


def _spelled(space: str, value: Any) -> bool:
    r"""Return whether a value is a text, \Sigma^*, or a sequence of tuples of them, (\Sigma^* \times \Sigma^*)^*."""
    if space == r"\Sigma^*":
        return isinstance(value, str | bytes)
    parts = space.removeprefix("(").removesuffix(")^*").split(r" \times ")
    return isinstance(value, list) and all(
        len(entry) == len(parts) and all(map(_spelled, parts, entry)) for entry in value
    )


def _axes(space: str, value: Any) -> list[tuple[str, int]]:
    axes, shape = read(space).axes, np.shape(value)
    if not _known(space) or isinstance(value, Mapped):
        return []
    if len(shape) < len(axes):
        raise MisfitError(f"{space}: got shape {shape}")
    return list(zip(axes, shape[len(shape) - len(axes) :], strict=True))


def _known(space: str) -> bool:
    return r"\to" not in space and r"\Sigma" not in space


def _agree(axis: str, size: int, expected: Any) -> None:
    if size != expected:
        raise MisfitError(f"{axis}: expected {expected}, got {size}")


def _evaluated(latex: str, sizes: Sizes) -> Any:
    try:
        return relations(latex)[0][1](sizes)
    except UnreadableError as error:
        raise MisfitError(f"{latex}: {error}") from error


def _numbers(value: Any) -> Any:
    """Return entries in float64; for a letter of a proof, numbers that satisfy exactly its assumptions."""
    if isinstance(value, sp.Symbol):
        least = 1 if value.is_positive else 0 if value.is_nonnegative else -1
        return np.array([least, least + 2]) if value.is_integer else np.array([least + 0.25 * (least == 0), 2.5, least])
    return np.ravel(np.asarray(value, dtype=np.float64))


def _listed(entries: str, sizes: Sizes) -> list[float]:
    r"""Return the numbers of a set that is printed as \{0, 1\} or \{0, \dots, V - 1\}."""
    words = at_top(entries.removeprefix(r"\{").removesuffix(r"\}"))
    if len(words) == 3 and "dots" in words[1]:
        first, last = (int(_evaluated(words[k], sizes)) for k in (0, 2))
        return [float(k) for k in range(first, last + 1)]
    return [float(_evaluated(word.replace(r"\infty", r"\infty "), sizes)) for word in words]


def _tight(entries: str, numbers: Any) -> bool:
    whole = bool((np.isinf(numbers) | (numbers == np.floor(numbers))).all())
    if found := _NUMBERS.fullmatch(entries.partition(r" \cup ")[0]):
        letter, bound = found.groups()
        if letter == "R":
            return not whole and (numbers.min() < 0) == (bound == "")
        least = "N" if numbers.min() >= 1 else "N_0" if numbers.min() == 0 else "Z"
        return whole and least == letter + bound
    if found := _INTERVAL.fullmatch(entries):
        first, last = (float(_evaluated(x, {})) for x in found.group(2, 3))
        below = numbers >= first if found[1] == "[" else numbers > first
        above = numbers <= last if found[4] == "]" else numbers < last
        return not whole and bool((below & above).all())
    raise MisfitError(f"{entries}: not a space")
