"""Faults of filters, greedy choice, beam search and byte-pair encoding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.generation import BeamSearch, Pair, Round, TopP, Training, bytes_of


def _without_crossing(q: Tensor, p: float) -> Tensor:
    return (q.cumsum(-1) <= p) | (torch.arange(q.shape[-1]) == 0) | bool(p == 1)


def _above_the_rest(q: Tensor, p: float) -> Tensor:
    """In rising order, those up to which the mass exceeds 1 − p, as the dtype rounds it."""
    return q.flip(-1).cumsum(-1).flip(-1) > torch.tensor(1 - p).to(q.dtype)


def _by_threshold(logits: Tensor, k: int) -> Tensor:
    """Everything that is tied with the k-th."""
    kth = logits.topk(min(k, logits.shape[-1]), -1).values[..., -1:]
    return logits.masked_fill(logits < kth, -math.inf)


def _last_of_equals(logits: Tensor) -> Tensor:
    return logits.shape[-1] - 1 - logits.flip(-1).argmax(-1)


def _top_ended(round_: Round) -> bool:
    return round_.kept[0].ids[-1] == round_.eos


def _enough_finished(round_: Round) -> bool:
    return len(round_.finished) >= round_.width


def _one_short(n: int) -> int:
    return n - 1


def _first_mergeable(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """Whatever can be merged first from the left is, and then again."""
    pieces, known = bytes_of(text), set(merges)
    while places := [i for i, pair in enumerate(pairwise(pieces)) if pair in known]:
        i = places[0]
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces


def _by_sweeps(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """From left to right each piece is merged with the next if any merge says so, until a sweep changes nothing."""
    pieces, known = bytes_of(text), set(merges)
    while True:
        swept, i = list[bytes](), 0
        while i < len(pieces):
            met = tuple(pieces[i : i + 2]) in known
            swept.append(b"".join(pieces[i : i + 2]) if met else pieces[i])
            i += 2 if met else 1
        if swept == pieces:
            return pieces
        pieces = swept


def _unlike_the_last(word: Sequence[bytes]) -> list[Pair]:
    """A pair that is equal to the one before it is not counted."""
    pairs = list(pairwise(word))
    return [pair for i, pair in enumerate(pairs) if i == 0 or pair != pairs[i - 1]]


FAULTS: dict[str, dict[str, Fault]] = {
    "SMP-01": {"top_p_filter": replaced_by(TopP(kept=_without_crossing))},
    "SMP-02": {"top_p_filter": replaced_by(TopP(kept=_above_the_rest))},
    "TOPK-01": {"top_k_filter": replaced_by(_by_threshold)},
    "GREEDY-01": {"greedy": replaced_by(_last_of_equals)},
    "BEAM-01": {"beam_search": replaced_by(BeamSearch(stop=_top_ended))},
    "BEAM-03": {"beam_search": replaced_by(BeamSearch(stop=_enough_finished))},
    "BEAM-04": {"beam_search": replaced_by(BeamSearch(length=_one_short))},
    "TOK-01": {"bpe_encode": replaced_by(_first_mergeable)},
    "TOK-03": {"bpe_train": replaced_by(Training(pairs=_unlike_the_last))},
    "TOK-07": {"bpe_encode": replaced_by(_by_sweeps)},
}
