"""Other ways to filters, greedy choice, beam search, byte-pair encoding and unigram segmentation."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count, pairwise

import torch
from torch import Tensor

from veriformer.spec.language.bpe import Pair, merged
from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.records import Variant, variant


def _bytes_of(text: str) -> list[bytes]:
    return [bytes([byte]) for byte in text.encode()]


Step = Callable[[Tensor], Tensor]


def _ranks(logits: Tensor) -> Tensor:
    """Return the number of scores before each in falling order, the lower index first of equals."""
    return torch.argsort(logits, dim=-1, descending=True, stable=True).argsort(-1)


def _by_ranks(logits: Tensor, k: int) -> Tensor:
    return torch.where(_ranks(logits) < k, logits, -math.inf)


def _by_counting(logits: Tensor, k: int) -> Tensor:
    """Keep a score if fewer than k are higher, or equal and earlier."""
    i = torch.arange(logits.shape[-1])
    a, b = logits[..., None, :], logits[..., :, None]
    ahead = (a > b) | ((a == b) & (i < i[:, None]))
    return torch.where(ahead.sum(-1) < k, logits, -math.inf)


def _nucleus(logits: Tensor, p: float, kept: Callable[[Tensor, float], Tensor]) -> Tensor:
    """Select among scores in falling order by ``kept``, which gets their probabilities."""
    falling, order = torch.sort(logits.detach(), dim=-1, descending=True, stable=True)
    chosen = kept(torch.softmax(widen(falling), -1), p)
    return logits.masked_fill(~torch.zeros_like(chosen).scatter(-1, order, chosen), -math.inf)


def _rising(q: Tensor, p: float) -> Tensor:
    """Return the mask of kept tokens: the least probable go, up to a mass of 1 − p, never the top one."""
    rest = q.double().flip(-1).cumsum(-1).flip(-1)
    return (rest > 1 - p) | (torch.arange(q.shape[-1]) == 0) | bool(p == 1)


def _by_size(q: Tensor, p: float) -> Tensor:
    """Return the mask of kept tokens: as many as are needed to reach p."""
    if p == 1:
        return torch.ones_like(q, dtype=torch.bool)
    n = (q.double().cumsum(-1) < p).sum(-1, keepdim=True) + 1
    return torch.arange(q.shape[-1]) < n


def _by_value(logits: Tensor, p: float) -> Tensor:
    """Cut at the value of the nucleus' last score; of equal scores keep the first, as many as there is room for."""
    falling = torch.sort(widen(logits), -1, descending=True).values
    n = _by_size(torch.softmax(falling, -1), p).sum(-1, keepdim=True)
    cut = falling.gather(-1, n - 1)
    above, equal = widen(logits) > cut, widen(logits) == cut
    room = n - above.sum(-1, keepdim=True)
    return torch.where(above | (equal & (equal.cumsum(-1) <= room)), logits, -math.inf)


def _by_maximum(logits: Tensor) -> Tensor:
    """Return the first index of the maximum."""
    i = torch.arange(logits.shape[-1])
    return torch.where(logits == logits.amax(-1, keepdim=True), i, logits.shape[-1]).amin(-1)


def _batched(
    step: Step, start: Tensor, *, beam_width: int, max_length: int, eos: int, length_penalty: float
) -> tuple[Tensor, Tensor]:
    """Search with finished texts kept in the batch, and scores as a tensor in the dtype of the step."""
    live, done = start[None], torch.zeros(1, dtype=torch.bool)
    total = torch.zeros(1, dtype=step(start[None]).dtype)
    finished: list[tuple[Tensor, Tensor]] = []
    for n in range(1, max_length - len(start) + 1):
        log_p = step(live).masked_fill(done[:, None], -math.inf)
        sums = (total[:, None] + log_p).flatten()
        order = sums.argsort(descending=True, stable=True)[:beam_width]
        order = order[sums[order] > -math.inf]
        if not len(order):
            break
        V = log_p.shape[-1]
        live, total = torch.cat([live[order // V], (order % V)[:, None]], 1), sums[order]
        done = live[:, -1] == eos
        ended = done if n < max_length - len(start) else torch.ones_like(done)
        finished += [(live[i], total[i] / n**length_penalty) for i in ended.nonzero()[:, 0].tolist()]
    return max(finished, key=lambda pair: float(pair[1]))


def _heap_encode(text: str, merges: Sequence[Pair]) -> list[bytes]:
    """Merge from a heap of places by rank and place, over a linked list."""
    ranks: dict[Pair, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    pieces: list[bytes | None] = [*_bytes_of(text)]
    heap: list[tuple[int, int, int, Pair]] = []

    def after(i: int) -> int:
        return next((j for j in range(i + 1, len(pieces)) if pieces[j] is not None), len(pieces))

    def push(i: int, j: int) -> None:
        if i >= 0 and j < len(pieces) and (pair := (pieces[i] or b"", pieces[j] or b"")) in ranks:
            heapq.heappush(heap, (ranks[pair], i, j, pair))

    for i in range(len(pieces) - 1):
        push(i, i + 1)
    while heap:
        _, i, j, pair = heapq.heappop(heap)
        if j == after(i) and (pieces[i], pieces[j]) == pair:
            pieces[i], pieces[j] = pair[0] + pair[1], None
            push(max((k for k in range(i) if pieces[k] is not None), default=-1), i)
            push(i, after(i))
    return [piece for piece in pieces if piece is not None]


def _last_of_ties(texts: Sequence[str], num_merges: int) -> list[Pair]:
    """Learn the largest of equally frequent pairs; pairs that occur once are not merged."""
    words, merges = [_bytes_of(text) for text in texts], list[Pair]()
    for _ in range(num_merges):
        pairs = [pair for word in words for pair in pairwise(word)]
        best = max(pairs, key=lambda pair: (pairs.count(pair), pair), default=None)
        if best is None or pairs.count(best) < 2:
            break
        merges.append(best)
        words = [merged(word, best) for word in words]
    return merges


def _not_strict(text: str, log_probs: Mapping[str, float]) -> list[str]:
    """Choose, of equally good cuts, the one with the shortest last piece: the comparison written with ≥."""
    best: list[tuple[float, list[str]]] = [(0.0, [])]
    for end in range(1, len(text) + 1):
        here = (-math.inf, list[str]())
        for start in range(end):
            score = best[start][0] + log_probs.get(text[start:end], -math.inf)
            if score >= here[0]:
                here = (score, [*best[start][1], text[start:end]])
        best.append(here)
    return best[-1][1]


def _from_the_right(text: str, log_probs: Mapping[str, float]) -> list[str]:
    best: list[tuple[float, int]] = [(-math.inf, 0)] * len(text) + [(0.0, 0)]
    for start in reversed(range(len(text))):
        ends = range(start + 1, len(text) + 1)
        best[start] = max((log_probs.get(text[start:end], -math.inf) + best[end][0], end) for end in ends)
    pieces, start = [], 0
    while start < len(text):
        pieces.append(text[start : best[start][1]])
        start = best[start][1]
    return pieces


def _shortest_path(text: str, log_probs: Mapping[str, float]) -> list[str]:
    """Apply Dijkstra's algorithm to the places between characters."""
    order = count()
    heap: list[tuple[float, int, int, tuple[str, ...]]] = [(0.0, next(order), 0, ())]
    seen: set[int] = set()
    while heap:
        cost, _, place, pieces = heapq.heappop(heap)
        if place == len(text):
            return list(pieces)
        if place in seen:
            continue
        seen.add(place)
        for piece, log_p in log_probs.items():
            if piece and log_p > -math.inf and text.startswith(piece, place):
                heapq.heappush(heap, (cost - log_p, next(order), place + len(piece), (*pieces, piece)))
    return []


VARIANTS: tuple[Variant, ...] = (
    variant("top-k-ranks", "Top-k by sorting twice", top_k_filter=_by_ranks),
    variant("top-k-counting", "Top-k by counting", top_k_filter=_by_counting),
    variant("top-p-base", "The base of the mutants: the mass before a token", top_p_filter=kernel("top_p_filter")),
    variant("top-p-rising", "Top-p from the least probable", top_p_filter=partial(_nucleus, kept=_rising)),
    variant("top-p-size", "Top-p by its size", top_p_filter=partial(_nucleus, kept=_by_size)),
    variant(
        "top-p-value",
        "The nucleus is cut off by the value of a score, which is equal except for ties",
        link="https://github.com/AI-Hypercomputer/maxtext/issues/950",
        top_p_filter=_by_value,
    ),
    variant("greedy-maximum", "The first place of the maximum", greedy=_by_maximum),
    variant("beam-base", "The base of the mutants", beam_search=kernel("beam_search")),
    variant(
        "beam-batched",
        "Finished texts stay in the batch; sums and score in the dtype of the step",
        beam_search=_batched,
    ),
    variant("bpe-base", "The base of the mutants", bpe_train=kernel("bpe_train")),
    variant(
        "bpe-other-ties", "The largest of equally frequent pairs, and none that occurs once", bpe_train=_last_of_ties
    ),
    variant("bpe-heap", "Encoding with a heap", bpe_encode=_heap_encode),
    variant(
        "unigram-not-strict",
        "Ties go to the other cut: the choice of two code paths that are both right",
        link="https://github.com/google/sentencepiece/issues/747",
        unigram_segment=_not_strict,
    ),
    variant("unigram-right", "Viterbi from the right", unigram_segment=_from_the_right),
    variant("unigram-path", "A shortest path", unigram_segment=_shortest_path),
)
