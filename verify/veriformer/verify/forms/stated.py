"""Layouts that the documentation of a class states for what its call takes: they bind how it is read."""

from __future__ import annotations

import re

from veriformer.verify.forms.candidate import Candidate

_BATCH = frozenset(("batch", "batch_size", "bs", "bsz", "b", "n_batch", "nbatch", "batches"))
_LENGTH = frozenset(
    ("seq", "seq_len", "sequence", "length", "len", "tokens", "time", "t", "l", "s", "seqlen", "seq_length")
)


def stated_layout(candidate: Candidate, name: str, layouts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first two layouts, of batch and of length first, without the one that the documentation excludes.

    It states a layout by the axes of the argument in brackets: ``x: [sequence length, batch size, embed dim]``.
    """
    method = getattr(candidate.thing, "forward", None)
    text = "\n".join(filter(None, (candidate.thing.__doc__, getattr(method, "__doc__", None))))
    for found in re.finditer(
        rf"\b{re.escape(name)}\b\s*(?:\([^)\n]*\))?\s*[:=-]?[^\n\[\(]{{0,40}}[\[\(]([^\])\n]*)[\])]", text
    ):
        axes = [_axis(axis) for axis in found[1].split(",")]
        if len(axes) == 3 and axes[:2] == ["batch", "length"]:
            return (layouts[0], *layouts[2:])
        if len(axes) == 3 and axes[:2] == ["length", "batch"]:
            return layouts[1:]
    return layouts


def _axis(said: str) -> str:
    own = set(re.findall(r"[a-z_]+", said.lower()))
    return "batch" if own & _BATCH else "length" if own & _LENGTH else ""
