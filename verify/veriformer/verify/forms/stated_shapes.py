"""Shapes of arguments as annotations, comments behind parameters and docstrings state them: they bind layouts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from typing import Any

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.form import Unfit

_KINDS = {
    "B": "b bs bsz batch batchsize minibatch",
    "H": "h heads head nh nheads hq hkv kv_heads n_heads num_heads n_head num_head n_kv_heads num_kv_heads g groups",
    "n": "n t s l m seq length len tokens sequence positions queries keys nq nk tq tk lq lk sq sk time q_len k_len",
    "V": "v vocab vocabulary vocab_size vocabulary_size n_vocab num_vocab",
    "d": "d dim c e embed model dk dv hs width channels features embedding hidden hd head_dim d_k d_v head_size d_head",
}
_OF_SIZE = {word: kind for kind, every in _KINDS.items() for word in every.split()}
_COUNTS = frozenset(("num", "n", "size", "number", "of"))

_TUPLE = r"[\[(]\s*([A-Za-z0-9_]+(?: [a-z]+)?(?:\s*[,x×]\s*[A-Za-z0-9_*]+(?: [a-z]+)?){1,4}),?\s*[\])]"
_OR = r"(?:[\[(]\s*\w+\s*,?\s*[\])]\s*(?:or|and|/|,)\s*)?"
"""A shape of one axis that is stated before the one of all rows."""

_TYPED = re.compile(r"\w+\[[\w. ]+,\s*[\"']([\w ]+)[\"']\]")


def stated_axes(candidate: Candidate, name: str) -> tuple[str, ...]:
    """Return the axes of an argument, each B, H, n, d, V or ?, as annotation, comment or docstring states them.

    Nothing where none of them states a shape.
    """
    for sizes in _stated(candidate, name):
        return tuple(_kind(size) for size in sizes)
    return ()


def agreeing_layouts(layouts: Sequence[str], axes: Sequence[str]) -> tuple[str, ...]:
    """Return the layouts that agree with stated axes. Raises Unfit where none does and all axes are understood."""
    if not axes:
        return tuple(layouts)
    found = tuple(one for one in layouts if _agrees(one.strip("[]").split(","), axes))
    if not found and "?" not in axes and len(set(axes)) == len(axes):
        raise Unfit(f"it states the shape [{', '.join(axes)}], in which nothing here calls it")
    return found or tuple(layouts)


def stated_layout(candidate: Candidate, name: str, layouts: tuple[str, ...]) -> tuple[str, ...]:
    """Return layouts, of batch and of length first, without the one of these two that a stated shape excludes."""
    axes = stated_axes(candidate, name)
    if len(axes) == len("Bnd") and axes[:2] in (("B", "n"), ("n", "B")):
        return (layouts[0], *layouts[2:]) if axes[0] == "B" else layouts[1:]
    return layouts


def _agrees(layout: Sequence[str], axes: Sequence[str]) -> bool:
    """Return whether axes may be those of a layout; ``1`` is a sequence of one position."""
    return len(layout) == len(axes) and all(
        own in ("?", one) or (one, own) == ("1", "n") for one, own in zip(layout, axes, strict=True)
    )


def _stated(candidate: Candidate, name: str) -> Iterator[list[str]]:
    p = candidate.parameters.get(name)
    typed = None if p is None or p.annotation is p.empty else _TYPED.search(str(p.annotation))
    if typed is not None:
        yield typed[1].split()
    listed = rf"(?:\w+\s*,\s*|\w+\s+and\s+)*\b{re.escape(name)}\b(?:\s*,\s*\w+|\s+and\s+\w+)*"
    patterns = (
        rf"^\s*{listed}[^#\n]*#\s*{_TUPLE}",
        rf"^\W*{listed}\s*(?:\([^()\n]*\))?\s*(?::|=|--|-|has shape|of shape|is)[^\n(\[]*{_OR}{_TUPLE}",
    )
    for text in (_source(candidate), _documented(candidate)):
        for pattern in patterns:
            found = re.search(pattern, text, re.MULTILINE)
            if found is not None:
                yield _split(found[1])
    if len(candidate.parameters) == 1:
        found = re.search(rf"\bshapes? {_OR}{_TUPLE}", _documented(candidate))
        if found is not None:  # of the one argument, or of a result that lies as it does
            yield _split(found[1])


def _split(sizes: str) -> list[str]:
    return re.split(r"\s*[,x×]\s*", sizes.strip())


def _documented(candidate: Candidate) -> str:
    method = getattr(candidate.thing, "forward", None) if candidate.is_class else None
    return "\n".join(inspect.getdoc(x) or "" for x in (candidate.thing, method) if x is not None)


def source_of(candidate: Candidate) -> str:
    """Return the text of a function, or of a class's forward; empty where there is none."""
    thing: Any = inspect.unwrap(candidate.thing) if candidate.is_function else getattr(candidate.thing, "forward", None)
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):  # made in memory, or no function
        return ""


def _source(candidate: Candidate) -> str:
    """Return the lines of the signature, in which a comment may stand behind each parameter."""
    lines = source_of(candidate)
    return re.split(r"\)\s*(?:->[^:]*)?:\s*\n", lines, maxsplit=1)[0]


def _kind(size: str) -> str:
    own = "_".join(size.lower().split())
    known = _OF_SIZE.get(own)
    if known is not None:
        return known
    rest = [word for word in words(size) if word not in _COUNTS]
    kinds = {_OF_SIZE.get(word, "?") for word in rest}
    return kinds.pop() if len(kinds) == 1 else "d" if {"dim", "size"} & set(words(size)) else "?"
