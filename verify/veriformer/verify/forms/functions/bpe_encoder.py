"""Byte-pair encoding as a class of GPT-2's kind: built from a vocabulary and merges, with a method for one token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import roles

_CONSTRUCTED = {"vocabulary": ("encoder", "vocab", "vocabulary"), "merges": ("bpe_merges", "merges")}


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_class or candidate.is_network or len(candidate.parameters_of("bpe")) != 1:
        return None
    if roles(candidate.constructor, _CONSTRUCTED) is None:
        return None
    made = _made(candidate, ())
    if len(getattr(made, "byte_encoder", ())) != 256:
        return None
    return Match(True, told=("its rule that takes text apart before it is encoded is left out",))


def _made(candidate: Candidate, merges: Sequence[tuple[str, str]]) -> object:
    names = roles(candidate.constructor, _CONSTRUCTED) or {}
    made: object = candidate.thing(**{names["vocabulary"]: {}, names["merges"]: list(merges)})
    return made


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., list[bytes]]:
    letters: dict[int, str] = dict(_made(candidate, ()).byte_encoder)  # type: ignore[attr-defined]
    numbers = {letter: byte for byte, letter in letters.items()}

    def call(text: str, merges: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
        if not text:
            raise NotOffered("text: one letter at least")
        spelt = [tuple("".join(letters[byte] for byte in part) for part in pair) for pair in merges]
        encoder = _made(candidate, [(first, second) for first, second in spelt])
        token = "".join(letters[byte] for byte in text.encode("utf-8"))
        pieces: str = encoder.bpe(token)  # type: ignore[attr-defined]
        return [bytes(numbers[letter] for letter in piece) for piece in pieces.split(" ")]

    return as_operation("bpe_encode", call)


FORM = Form(
    name="functions/bpe_encoder",
    operation="bpe_encode",
    says="a class built from a vocabulary and merges: encoder.bpe(token), its symbols with spaces between them",
    match=_match,
    bind=_bind,
    closed=True,
)
