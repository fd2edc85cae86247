"""Top-p, beam search and byte-pair encoding, by stages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from veriformer.verify.mutants.staged_reference.scores import widen

Pair = tuple[bytes, bytes]


def before_threshold(q: Tensor, p: float) -> Tensor:
    """Return the mask of kept probabilities in falling order: those before which the mass is below p."""
    return (q.cumsum(-1) - q < p) | (torch.arange(q.shape[-1]) == 0) | bool(p == 1)


@dataclass(frozen=True)
class TopP:
    """Scores in falling order, their probabilities, and ``kept`` to choose among them."""

    kept: Callable[[Tensor, float], Tensor] = before_threshold

    def __call__(self, logits: Tensor, p: float) -> Tensor:
        """Return the scores with −∞ outside the nucleus."""
        falling, order = torch.sort(logits.detach(), dim=-1, descending=True, stable=True)
        kept = self.kept(torch.softmax(widen(falling), -1), p)
        return logits.masked_fill(~torch.zeros_like(kept).scatter(-1, order, kept), -math.inf)


@dataclass(frozen=True)
class Text:
    """Ids with their start, and the sum of the log-probabilities of what was generated."""

    ids: tuple[int, ...]
    total: float


@dataclass(frozen=True)
class Round:
    """State after a round of beam search: the continuations kept, best first, and the texts that have ended so far."""

    kept: list[Text]
    finished: list[Text]
    width: int
    eos: int


def never(round_: Round) -> bool:
    """No reason to stop early."""
    return False


def generated(n: int) -> int:
    """Return the length of n generated tokens."""
    return n


@dataclass(frozen=True)
class BeamSearch:
    """Beam search over Python's lists.

    stop: whether to end after a round although live texts are left, which then do not compete. length: what the penalty
    takes for the length of n generated tokens.
    """

    stop: Callable[[Round], bool] = never
    length: Callable[[int], int] = generated

    def __call__(
        self,
        step: Callable[[Tensor], Tensor],
        start: Tensor,
        *,
        beam_width: int,
        max_length: int,
        eos: int,
        length_penalty: float,
    ) -> tuple[Tensor, float]:
        """Return the best text and its score."""
        live, finished = [Text(tuple(start.tolist()), 0.0)], list[Text]()
        while live and len(live[0].ids) < max_length:
            kept = self._continued(step, live, beam_width)
            finished += [text for text in kept if text.ids[-1] == eos]
            live = [text for text in kept if text.ids[-1] != eos]
            if finished and self.stop(Round(kept, finished, beam_width, eos)):
                live = []
        best = max(finished + live, key=lambda text: self._score(text, len(start), length_penalty))
        return torch.tensor(best.ids), self._score(best, len(start), length_penalty)

    def _continued(self, step: Callable[[Tensor], Tensor], live: list[Text], width: int) -> list[Text]:
        rows = step(torch.tensor([text.ids for text in live])).tolist()
        every = [
            Text((*text.ids, k), text.total + x)
            for text, row in zip(live, rows, strict=True)
            for k, x in enumerate(row)
            if x > -math.inf
        ]
        return sorted(every, key=lambda text: -text.total)[:width]

    def _score(self, text: Text, start: int, penalty: float) -> float:
        return text.total / float(max(1, self.length(len(text.ids) - start)) ** penalty)


def bytes_of(text: str) -> list[bytes]:
    """Every byte as a piece."""
    return [bytes([byte]) for byte in text.encode()]


def joined(pieces: Sequence[bytes], pair: Pair) -> list[bytes]:
    """Every occurrence of the pair joined, from the left, without overlap."""
    out: list[bytes] = []
    rest = list(pieces)[::-1]
    while rest:
        piece = rest.pop()
        out.append(piece + rest.pop() if rest and (piece, rest[-1]) == pair else piece)
    return out


def neighbours(word: Sequence[bytes]) -> list[Pair]:
    """All pairs of neighbours, overlapping ones too."""
    return list(pairwise(word))


@dataclass(frozen=True)
class Training:
    """Byte-pair training; ``pairs`` lists the pairs of a word that count."""

    pairs: Callable[[Sequence[bytes]], list[Pair]] = neighbours

    def __call__(self, texts: Sequence[str], num_merges: int) -> list[Pair]:
        """Return the merges in the order of learning."""
        words, merges = [bytes_of(text) for text in texts], list[Pair]()
        while len(merges) < num_merges:
            counts: dict[Pair, int] = {}
            for pair in (pair for word in words for pair in self.pairs(word)):
                counts[pair] = counts.get(pair, 0) + 1
            if not counts:
                break
            merges.append(max(counts, key=counts.__getitem__))
            words = [joined(word, merges[-1]) for word in words]
        return merges
