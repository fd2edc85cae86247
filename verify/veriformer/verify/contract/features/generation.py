"""Features of generation, texts and caches."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

from veriformer.spec.language.bpe import bpe_train
from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Named, fragile, ordinary


def of_generation(operation: str) -> Iterator[Feature]:
    """Yield the features of calls of beam search, tokenizers and caches."""
    if operation == "beam_search":
        yield from ordinary(operation, *_beams())
    if operation in ("bpe_train", "bpe_encode", "unigram_segment"):
        yield from ordinary(operation, ("text outside ASCII", lambda a: not _text(a).isascii()))
        yield from fragile(operation, ("an empty text", lambda a: not _text(a)))
    if operation == "bpe_train":
        yield from fragile(operation, ("more merges than there are pairs", _runs_out))
    if operation == "bpe_encode":
        yield from fragile(operation, ("no merges", lambda a: len(a["merges"]) == 0))
    if operation == "unigram_segment":
        yield from fragile(operation, ("probabilities that underflow", _underflows), optional=False)
        yield from ordinary(operation, ("a piece at -inf", lambda a: float("-inf") in a["log_probs"].values()))
    if operation == "kv_cache":
        yield from ordinary(operation, *_caches())


def _beams() -> tuple[Named, ...]:
    return (
        ("a start of several tokens", lambda a: a["start"].numel() > 1),
        ("a wider beam than one", lambda a: a["beam_width"] > 1),
    )


def _text(a: Arguments) -> str:
    return str(a["text"]) if "text" in a else "".join(a["texts"])


def _runs_out(a: Arguments) -> bool:
    """Return whether training runs out of pairs before ``num_merges`` merges are learned."""
    return len(bpe_train(a["texts"], a["num_merges"])) < int(a["num_merges"])


def _caches() -> tuple[Named, ...]:
    return (
        ("several updates", lambda a: a["actions"].count("update") > 1),
        ("an update of several tokens", lambda a: any(x.ndim == 4 and x.shape[2] > 1 for x in a["rows"])),
        ("a reordered cache", lambda a: "reorder" in a["actions"]),
        ("an update after a reorder", lambda a: _reordered(a["actions"])),
        ("a cache that was reset", lambda a: "reset" in a["actions"]),
        ("more tokens than max_length", lambda a: "overflow" in a["actions"]),
    )


def _reordered(actions: Sequence[str]) -> bool:
    """Return whether an update follows a reorder of a cache that held tokens."""
    kept = moved = False
    for action in actions:
        if action == "update" and moved:
            return True
        kept = kept or action == "update" if action != "reset" else False
        moved = (moved or action == "reorder") and kept
    return False


def _underflows(a: Arguments) -> bool:
    """Return whether the probability of some piece, or of every cut of the text, is below the normal numbers."""
    known = {piece: x for piece, x in a["log_probs"].items() if x != -math.inf and piece}
    of_text = len(a["text"]) * max((x / len(piece) for piece, x in known.items()), default=0.0)  # at most
    return bool(min((of_text, *known.values())) < math.log(sys.float_info.min))
