"""Demands of an encoder-decoder: tokens of the source and of the target, and perhaps a mask of each."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.conventions import MASKS, mask_as
from veriformer.verify.forms.meanings import Parameters

SOURCE = frozenset(("src", "source", "enc", "encoder"))
TARGET = frozenset(("trg", "tgt", "target", "targets", "dec", "decoder"))
"""Words of what belongs to the encoder, and to the decoder."""

_TOKENS = frozenset(("input", "inputs", "token", "tokens", "ids", "id", "seq", "seqs", "sequence", "batch", "text"))
"""Words that tokens are called by, beside those that say whose they are."""

_PREVIOUS = "prev_output_tokens"

AXES = ("[B,1,n,n]", "[B,n,n]", "[n,n]")
"""The axes of the mask of the target; that of the source has one row for all queries, or none."""


def encoder_input(parameters: Parameters) -> str:
    """Return the name of what its encoder reads; empty where it does not demand that and what is decoded."""
    return next(_of_side(parameters, SOURCE), "") if decoder_input(parameters) else ""


def decoder_input(parameters: Parameters) -> str:
    """Return the name of the tokens that are decoded; empty where none are demanded by such a name."""
    return next(_of_side(parameters, TARGET), _PREVIOUS if _PREVIOUS in parameters else "")


def _of_side(parameters: Parameters, side: frozenset[str]) -> Iterator[str]:
    """Yield the arguments that are demanded and are tokens of the encoder, or of the decoder, by their words."""
    for name, p in parameters.items():
        own = set(words(name))
        if p.default is p.empty and own & side and own <= side | _TOKENS:
            yield name


@dataclass(frozen=True)
class Masks:
    """Masks of an encoder-decoder. source, target: their names; empty where it has no such mask. rows: whether the mask
    of the source has an axis of queries."""

    source: str
    target: str
    kind: str = MASKS[0]
    axes: str = AXES[0]
    rows: bool = True

    def given(self, ids: Tensor, m: int) -> dict[str, Tensor]:
        """Return the masks for targets ``[B, n]`` and ``m`` tokens of the source: every token of it is seen."""
        b, n = ids.shape
        causal = torch.ones(n, n, dtype=torch.bool).tril()
        tokens = torch.ones(b, 1, m, dtype=torch.bool) if self.rows else torch.ones(b, m, dtype=torch.bool)
        if self.axes == AXES[0]:
            causal, tokens = causal.expand(b, 1, n, n), tokens[:, None] if self.rows else tokens
        elif self.axes == AXES[1]:
            causal = causal.expand(b, n, n)
        found = {self.source: tokens, self.target: causal}
        return {name: mask_as(mask, self.kind, torch.float32) for name, mask in found.items() if name}

    def told(self) -> str:
        """Return the layout of the masks in a few words."""
        return f"its masks are given as {self.kind}, {self.axes}"

    def ways(self) -> Iterator[Masks]:
        """Yield every way in which the masks may be given."""
        for kind, axes, rows in itertools.product(MASKS, AXES, (True, False)):
            yield Masks(self.source, self.target, kind, axes, rows)


def masks_demanded(parameters: Parameters) -> Masks | None:
    """Return the masks without which it cannot be called, the one of the target among them; None without one."""
    demanded = [name for name, p in parameters.items() if p.default is p.empty and "mask" in words(name)]
    of = {side: [name for name in demanded if side & set(words(name))] for side in (SOURCE, TARGET)}
    if len(of[TARGET]) != 1 or len(of[SOURCE]) > 1 or len(demanded) > 1 + len(of[SOURCE]):
        return None
    return Masks(next(iter(of[SOURCE]), ""), of[TARGET][0])
