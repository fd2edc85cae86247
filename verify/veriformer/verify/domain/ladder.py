"""Plain calls of growing sizes, for targets that refuse small ones: which sizes of each axis are taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from veriformer.verify.contract.rules import SizeRule, rule
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.strategies import Values

Sizes = Mapping[str, int]

WIDTHS = (1, 2, 3, 4, 8, 16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256)
LENGTHS = (1, 2, 3, 5, 8, 16, 17, 32, 48, 64, 80, 96, 100, 128, 192, 256)
_STARTS = (64, 128, 16, 32, 256, 1024)


def _of_attention(trial: Trial, s: Sizes) -> Arguments:
    kind = Values("gaussian", 7)
    q, k = (trial.tensor(x) for x in kind.array(2, 1, 2, s["n"], s["d_k"]))
    return {"q": q, "k": k, "v": trial.tensor(kind.array(1, 2, s["n"], s["d_v"]))}


def _of_rows(name: str, axis: str) -> Callable[[Trial, Sizes], Arguments]:
    return lambda trial, s: {name: trial.tensor(Values("gaussian", 7).array(3, s[axis]))}


_CALLS: dict[str, tuple[dict[str, tuple[int, ...]], Callable[[Trial, Sizes], Arguments]]] = {
    "attention": ({"n": LENGTHS, "d_k": WIDTHS, "d_v": WIDTHS}, _of_attention),
    **dict.fromkeys(("softmax", "logsumexp"), ({"n": LENGTHS}, _of_rows("z", "n"))),
    **dict.fromkeys(("layer_norm", "rms_norm", "silu", "gelu"), ({"d": WIDTHS}, _of_rows("x", "d"))),
}


def climbed(operation: str, trial: Trial, answers: Callable[[Trial, Arguments], bool]) -> list[SizeRule]:
    """The rules on sizes of an operation; none where no size that was tried is taken, or all are.

    The widths of keys and values are varied together: where they must be equal, another rule is to say so.
    """
    if operation not in _CALLS:
        return []
    axes, make = _CALLS[operation]

    def taken(s: Sizes) -> bool:
        return answers(trial, make(trial, s))

    start = _first(axes, taken)
    if start is None:
        return []
    found: list[SizeRule | None] = []
    for axis, ladder in axes.items():
        together = ("d_k", "d_v") if axis in ("d_k", "d_v") else (axis,)
        held = [size for size in ladder if taken({**start, **dict.fromkeys(together, size)})]
        found.append(rule(axis, ladder, held))
    return [one for one in found if one is not None]


def _first(axes: Mapping[str, Sequence[Any]], taken: Callable[[Sizes], bool]) -> Sizes | None:
    """Sizes that are taken: lengths and widths alike, or each of its own."""
    lengths = [axis for axis in axes if axis == "n"]
    for width in _STARTS:
        for length in (width, *_STARTS) if lengths else (width,):
            s = dict.fromkeys(axes, width) | dict.fromkeys(lengths, length)
            if taken(s):
                return s
    return None
