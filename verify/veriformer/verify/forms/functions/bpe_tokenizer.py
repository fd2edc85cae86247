"""Byte-pair tokenizers as classes: ``train(text, vocab_size)`` learns merges of ids, ``encode(text)`` gives ids."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import roles

_TRAINED = {
    "text": ("text", "texts", "corpus", "data", "training_text", "train_text", "training_data"),
    "size": ("vocab_size", "target_vocab_size", "vocabulary_size", "num_merges", "n_merges", "max_vocab_size"),
}
_MERGES = {"num_merges", "n_merges"}
_BYTES = 256
_PLAIN = "ababab", 2
"""A text, and how many merges can be learned of it; one that is asked for may be missing."""

_APART = " .1\n-"
"""Characters that rules which pre-tokenize text split from the letter before."""

GIVEN = ("one text", "a list of texts")
Ids = Mapping[tuple[int, int], int]


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_class or candidate.is_network or not candidate.parameters_of("encode"):
        return None
    if roles(candidate.parameters_of("train"), _TRAINED) is None or set(candidate.words) & {"unigram", "wordpiece"}:
        return None
    given = next((way for way in GIVEN if _learned(candidate, way, *_PLAIN)), None)
    if given is None:
        return None
    if any(_learned(candidate, given, 4 * f"a{one}", 2)[:1] != [(b"a", one.encode())] for one in _APART):
        raise Unfit("it takes text apart by a rule before it pairs letters, and the contract has none")
    return Match(True, {"given": (given,)})


def _learned(candidate: Candidate, given: str, text: str, merges: int) -> list[tuple[bytes, bytes]]:
    """Return the pairs that are learned of a text; none where it is not trained so, or not on bytes."""
    try:
        tokenizer = _trained(candidate, given, [text], merges)
        return _spelt(vars(tokenizer)[_holding(tokenizer)])
    except Exception:
        return []


def _trained(candidate: Candidate, given: str, texts: Sequence[str], merges: int) -> Any:
    names = roles(candidate.parameters_of("train"), _TRAINED) or {}
    tokenizer = candidate.thing()
    size = merges if names["size"] in _MERGES else _BYTES + merges
    with contextlib.redirect_stdout(io.StringIO()):
        tokenizer.train(**{names["text"]: texts[0] if given == GIVEN[0] else list(texts), names["size"]: size})
    return tokenizer


def _holding(tokenizer: object) -> str:
    """Return the attribute of a trained tokenizer with its merges: from pairs of ids to the merged id."""
    for name, value in vars(tokenizer).items():
        if isinstance(value, dict) and all(_is_pair(key) and isinstance(x, int) for key, x in value.items()) and value:
            return name
    raise Unfit("it holds no merges of ids")


def _is_pair(key: Any) -> bool:
    return isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, int) for part in key)


def _spelt(merges: Ids) -> list[tuple[bytes, bytes]]:
    """Return the merges in the order of their ids, as bytes."""
    spelling = {byte: bytes([byte]) for byte in range(_BYTES)}
    found = []
    for (first, second), merged in sorted(merges.items(), key=lambda item: item[1]):
        pair = spelling[first], spelling[second]
        spelling[merged] = b"".join(pair)
        found.append(pair)
    if len({*spelling.values()}) < len(spelling):
        raise NotOffered("texts: two of its tokens are the same bytes, and it tells them apart")
    return found


def _bind_training(candidate: Candidate, readings: Readings) -> Callable[..., list[tuple[bytes, bytes]]]:
    given = readings["given"]
    holding = _holding(_trained(candidate, given, [_PLAIN[0]], _PLAIN[1]))

    def call(texts: Sequence[str], num_merges: int) -> list[tuple[bytes, bytes]]:
        if not "".join(texts):
            raise NotOffered("texts: one letter at least")
        if num_merges == 0:
            raise NotOffered("num_merges: one at least")
        whole, stops = (list(texts), "") if given == GIVEN[1] else _joined(texts)
        found = _spelt(vars(_trained(candidate, given, whole, num_merges))[holding])
        of_stops = [any(stop.encode() in part for part in pair for stop in stops) for pair in found]
        return found[: of_stops.index(True)] if True in of_stops else found

    return as_operation("bpe_train", call)


def _joined(texts: Sequence[str]) -> tuple[list[str], str]:
    """Return all texts as one, and the letters that stand between them. Each is met once: its pairs are learned
    last.
    """
    unused = [chr(code) for code in range(1, 128) if not any(chr(code) in text for text in texts)]
    if len(texts) > len(unused) + 1:
        raise NotOffered(f"texts: at most {len(unused) + 1} can be told apart")
    stops = unused[: len(texts) - 1]
    return ["".join(part for pair in zip(texts, [*stops, ""], strict=True) for part in pair)], "".join(stops)


def _bind_encoding(candidate: Candidate, readings: Readings) -> Callable[..., list[bytes]]:
    def call(text: str, merges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        tokenizer = _trained(candidate, readings["given"], [_PLAIN[0]], _PLAIN[1])
        spelling = {bytes([byte]): byte for byte in range(_BYTES)}
        learned: dict[tuple[int, int], int] = {}
        for (first, second), token in zip(merges, count(_BYTES), strict=False):
            if first + second in spelling:
                raise NotOffered("merges: two of them give the same bytes, and it tells these apart")
            learned[spelling[first], spelling[second]] = spelling[first + second] = token
        vars(tokenizer)[_holding(tokenizer)] = learned
        letters = {token: piece for piece, token in spelling.items()}
        for key, value in vars(tokenizer).items():
            if isinstance(value, dict) and value.get(0) == b"\0":  # what it decodes by
                vars(tokenizer)[key] = dict(letters)
        return [letters[int(token)] for token in tokenizer.encode(text)]

    return as_operation("bpe_encode", call)


FORMS = tuple(
    Form(
        name=f"functions/{operation}_of_tokenizer",
        operation=operation,
        says="a class with train(text, vocab_size) and encode(text), which holds its merges as pairs of ids",
        neutral=("given",),
        beside=True,
        match=_match,
        bind=bind,
        closed=True,
    )
    for operation, bind in (("bpe_train", _bind_training), ("bpe_encode", _bind_encoding))
)
