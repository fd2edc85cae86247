"""Tokenizers for training: bytes as they are, or byte pairs learned from the text by a library made for it."""

from pathlib import Path
from typing import Protocol

from veriformer.impl import checks

BYTES = 256


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
        """Nothing was learned, but a reader should know."""
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
