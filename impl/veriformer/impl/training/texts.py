"""Texts to train on, a file, a data set of Hugging Face or one that is made here, and tokenizers for them.

A tokenizer takes bytes as they are, or byte pairs learned from the text by a library made for it.
"""

import random
from pathlib import Path
from typing import Protocol

from veriformer.impl import checks

NAMES = ["Ada", "Bela", "Carl", "Dora", "Emil", "Fanny", "Gustav", "Hanna"]
THINGS = ["apple", "boat", "candle", "drum", "egg", "feather", "glass", "hat"]
PLACES = ["in the garden", "at the harbour", "under the bridge", "on the hill", "behind the mill"]
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]

BYTES = 256


def made_text(stories: int = 400, seed: int = 0) -> str:
    """Make a text with something to learn: words, sentences, who holds how many of what, and what they add up to."""
    source = random.Random(seed)
    return "\n".join(_story(source) for _ in range(stories))


def _story(source: random.Random) -> str:
    giver, taker = source.sample(NAMES, 2)
    thing, place = source.choice(THINGS), source.choice(PLACES)
    had, got = source.randrange(1, 7), source.randrange(1, 7)
    return (
        f"{taker} has {_many(had, thing)} {place}. {giver} brings {_many(got, thing)}. "
        f"Now {taker} has {_many(had + got, thing)}.\n"
    )


def _many(number: int, thing: str) -> str:
    return f"{NUMBERS[number]} {thing}" + ("" if number == 1 else "s")


def text_of(file: Path | None, dataset: str | None) -> str:
    """Return the text of a file, or of a data set of Hugging Face, or one made here."""
    if dataset is not None:
        return _text_of_dataset(dataset)
    return made_text() if file is None else file.read_text(encoding="utf-8")


def _text_of_dataset(dataset: str) -> str:
    """Return the column `text` of the training part of a data set: `name`, `name:config`, or a folder of files.

    Raises `ValueError` without the library `datasets`, for what it cannot find, and where there is no such column.
    """
    try:
        from datasets import load_dataset  # an extra, and only for this
    except ImportError:
        checks.raise_for("dataset", "the package datasets", "none", "install it with pip install 'veriformer[text]'")
    name, _, config = dataset.partition(":")
    try:
        rows = load_dataset(name, config or None, split="train")
    except OSError as error:
        checks.raise_for("dataset", "a data set that can be read", repr(dataset), f"see what hinders it: {error}")
    if "text" not in rows.column_names:
        checks.raise_for("dataset", "a column named text", rows.column_names, "rename the one to read")
    return "\n".join(rows["text"])


class Tokenizer(Protocol):
    """From a text to ids and back; `vocab_size` ids in all."""

    vocab_size: int

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids."""
        ...

    def save(self, path: Path) -> None:
        """Write what it learned to a file."""
        ...


class ByteTokenizer:
    """Each byte of UTF-8 is a token: nothing to learn, and nothing unknown."""

    vocab_size = BYTES

    def encode(self, text: str) -> list[int]:
        """Return the bytes of a text."""
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        """Return the text of bytes; what is cut in half shows as a replacement character."""
        return bytes(ids).decode(errors="replace")

    def save(self, path: Path) -> None:
        """Write the tokenizer's type: nothing was learned, but a reader should know."""
        path.write_text('{"type": "bytes"}\n', encoding="utf-8")


class PairTokenizer:
    """Byte-level BPE, trained and run by the `tokenizers` library."""

    def __init__(self, text: str, vocab_size: int) -> None:
        from tokenizers import ByteLevelBPETokenizer  # an extra: bytes need no library

        self._inner = ByteLevelBPETokenizer()
        size = checks.integer("vocabulary", vocab_size, minimum=BYTES)
        self._inner.train_from_iterator(text.splitlines(keepends=True), vocab_size=size, show_progress=False)
        self.vocab_size: int = self._inner.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return list(self._inner.encode(text).ids)

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids."""
        return str(self._inner.decode(ids))

    def save(self, path: Path) -> None:
        """Write the vocabulary and the merges, in the library's own format."""
        self._inner.save(str(path))


def tokenizer_for(text: str, vocabulary: int) -> Tokenizer:
    """Return the tokenizer of a vocabulary: bytes for 256, learned pairs above."""
    return ByteTokenizer() if vocabulary == BYTES else PairTokenizer(text, vocabulary)
