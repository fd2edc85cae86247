"""Cases of a comparison, the most telling first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from torch.utils import _pytree as pytree

from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.drawing import Inputs, tensors

Sizes = tuple[tuple[int, int], ...]
Named = Iterator[tuple[str, Case]]

WORKING = 2**14
"""Numbers among the arguments up to which a call is quick."""

CAPS = (256, 128, 64, 32, 16, 8, 4)
_INSIDE = 64
"""A whole number among the class's arguments from which on it is a size, though no tensor has it."""

_KINDS = (
    "peaked",
    "positive",
    "negative",
    "integers",
    "ties",
    "offset",
    "spread",
    "large",
    "zeros",
    "constant",
    "far offset",
    "small",
    "sparse",
    "duplicates",
    "huge",
    "tiny",
)
_ALIASES, _SIZES, _NUMBERS = 2, 6, 4


def symbols(inputs: Inputs, init: Inputs) -> list[int]:
    """The sizes that may be replaced, the most frequent first: those of axes, and large numbers among arguments."""
    counts = Counter(size for x in tensors(inputs) for size in x.shape if size > 1)
    inside = (v for v in pytree.tree_leaves(init) if isinstance(v, int) and not isinstance(v, bool) and v >= _INSIDE)
    counts.update(inside)
    return [size for size, _ in counts.most_common()]


def halved(size: int, cap: int) -> int:
    """A size divided by two until it is no larger than this."""
    while size > cap and size > 3:
        size //= 2
    return size


def widened(
    usual: Case, base: Case, given: Inputs, init: Inputs, *, module: bool, drawing: bool, random: bool
) -> Named:
    """Every case beside the given one.

    usual: at working sizes. drawing: whether weights are drawn anew. random: whether calls as given draw numbers.
    """
    plain = usual.but(drawn=drawing)
    floating = [x for x in tensors(given) if x.is_floating_point()]
    yield "given again", base.but(seed=1)
    yield "small", usual
    yield "exchanged", usual.but(values="exchanged")
    if drawing:
        yield "weights", plain
    yield "other", plain.but(values="gaussian", seed=2)
    yield "gradient", plain.but(values="gaussian", seed=3, gradient=True)
    yield "other again", plain.but(values="gaussian", seed=4)
    yield "other still", plain.but(values="gaussian", seed=5)
    if module:
        yield from ((mode, plain.but(values="gaussian", seed=6, mode=mode)) for mode in ("train", "eval") if not random)
    yield from _laid_out(plain, given)
    if floating:
        yield from ((f"values {kind}", plain.but(values=kind, seed=10 + i)) for i, kind in enumerate(_KINDS))
    yield from _sized(plain, given, init)
    yield from _aliased(plain, given)
    for i, dtype in enumerate(("bfloat16", "float16", "float64")):
        if floating and any(str(x.dtype) != f"torch.{dtype}" for x in floating):
            yield f"in {dtype}", plain.but(values="gaussian", seed=40 + i, dtype=dtype)
    yield "gradient positive", plain.but(values="positive", seed=50, gradient=True)
    for place in range(_NUMBERS):
        yield f"number {place}", plain.but(values="gaussian", seed=60, scalar=place)


def _laid_out(plain: Case, given: Inputs) -> Named:
    for i, layout in enumerate(("transposed", "sliced", "shifted", "expanded", "channels last")):
        if layout != "channels last" or any(x.ndim == 4 for x in tensors(given)):
            yield layout, plain.but(values="gaussian", seed=30 + i, layout=layout)


def _sized(plain: Case, given: Inputs, init: Inputs) -> Named:
    sizes = dict(plain.sizes)
    known = symbols(given, init)
    tried = 0
    for new in (lambda n: n + 1, lambda n: 1, lambda n: 2 * n + 3):
        for size in known:
            now = sizes.get(size, size)
            if tried < _SIZES * 2 and new(now) != now:
                tried += 1
                changed = tuple({**sizes, size: new(now)}.items())
                yield f"size {size} as {new(now)}", plain.but(values="gaussian", seed=20, sizes=changed, resized=size)


def _aliased(plain: Case, given: Inputs) -> Named:
    found = tensors(given)
    pairs = [
        (i, j)
        for i, j in combinations(range(len(found)), 2)
        if found[i].shape == found[j].shape and found[i].dtype == found[j].dtype
    ]
    for pair in pairs[:_ALIASES]:
        yield f"alias {pair[0]} {pair[1]}", plain.but(values="gaussian", seed=7, alias=pair)
