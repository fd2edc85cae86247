"""Generation and text: filters, searches and tokenizers."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """The k largest scores of each row, ties to the lower index, and −∞ elsewhere."""


def top_p_filter(logits: Tensor, p: float) -> Tensor:
    """The smallest set of tokens whose mass reaches p, one at least, and −∞ elsewhere."""


def greedy(logits: Tensor) -> Tensor:
    """The largest score of each row; of equal ones the lower index."""


def beam_search(
    step: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    beam_width: int,
    max_length: int,
    eos: int,
    length_penalty: float = 0.0,
) -> tuple[Tensor, float]:
    """The text of the highest score found, and the score: log-probabilities over length ** length_penalty."""


def bpe_train(texts: Sequence[str], num_merges: int) -> Sequence[tuple[bytes, bytes]]:
    """Merges of bytes: again and again the most frequent pair of neighbours."""


def bpe_encode(text: str, merges: Sequence[tuple[bytes, bytes]]) -> Sequence[bytes]:
    """A text cut into byte strings, the merge learned first made first."""


def unigram_segment(text: str, log_probs: Mapping[str, float]) -> Sequence[str]:
    """A text cut into the pieces of highest total log-probability."""
