"""Generation and text: filters, searches and tokenizers."""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor


def top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Logits with −∞ outside the k largest of each row; ties go to the lower index."""


def top_p_filter(logits: Tensor, p: float) -> Tensor:
    """Logits with −∞ outside the smallest set of tokens whose probability reaches p; one at least stays."""


def greedy(logits: Tensor) -> Tensor:
    """Index of the largest logit of each row; ties go to the lower index."""


def beam_search(
    step: Callable[[Tensor], Tensor],
    start: Tensor,
    *,
    beam_width: int,
    max_length: int,
    eos: int,
    length_penalty: float = 0.0,
) -> tuple[Tensor, float]:
    """Best hypothesis found and its score, Σ log p / length ** length_penalty."""


def bpe_train(texts: Sequence[str], num_merges: int) -> Sequence[tuple[bytes, bytes]]:
    """Byte-pair merges, learned by repeatedly merging the most frequent pair."""


def bpe_encode(text: str, merges: Sequence[tuple[bytes, bytes]]) -> Sequence[bytes]:
    """Byte-pair encoding: a text as byte strings, the merge learned first applied first."""


def unigram_segment(text: str, log_probs: Mapping[str, float]) -> Sequence[str]:
    """Segmentation of highest total log-probability (Viterbi)."""
