"""Axes of the masks that layers of attention take."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch
from torch import nn

from veriformer.verify.forms.attention_calls import has_tables
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.heads import MASK_AXES, ONE_FOR_ALL
from veriformer.verify.forms.layer_arguments import BATCH, TABLES, arguments_of
from veriformer.verify.forms.layer_sizes import HEADS, WIDTH

_TOKENS = 3
_FEWER, _MORE = 2, 5
"""Texts, fewer and more than tokens."""


def tenable_axes(
    candidate: Candidate, instance: nn.Module, names: Mapping[str, str], causal: str, among: tuple[str, ...] = MASK_AXES
) -> tuple[str, ...]:
    """Return the axes that a layer's mask may have, without those that it takes for no more texts than tokens.

    ``scores + mask[:n, :n]`` takes a mask ``[B, 1, n, n]`` of few texts as well, and means one ``[n, n]`` for all.
    """

    def takes(axes: str, texts: int) -> bool:
        tables = TABLES if has_tables(names) else ("",)
        return any(
            _answers(candidate, instance, names, causal, (*kind, axes), texts)
            for kind in itertools.product(tables, MASKS)
        )

    if not takes(ONE_FOR_ALL, _MORE):
        return among
    return tuple(axes for axes in among if axes == ONE_FOR_ALL or takes(axes, _MORE) or not takes(axes, _FEWER))


def _answers(
    candidate: Candidate,
    instance: nn.Module,
    names: Mapping[str, str],
    causal: str,
    reading: tuple[str, str, str],
    texts: int,
) -> bool:
    tables, kind, axes = reading
    readings = {"causal": causal, "batch": BATCH[0], "mask": kind, "mask_axes": axes} | (
        {"tables": tables} if tables else {}
    )
    options = (
        {"is_causal": True} if axes == ONE_FOR_ALL else {"attention_mask": torch.ones(texts, _TOKENS, dtype=torch.bool)}
    )
    x = torch.ones(texts, _TOKENS, WIDTH)
    try:
        with torch.random.fork_rng(), torch.no_grad():
            given = arguments_of(x, options, names, readings, candidate.parameters, HEADS, WIDTH // HEADS, angle=0)
            instance(**given)
    except Exception:  # refused, for whatever reason
        return False
    return True
