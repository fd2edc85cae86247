"""Decoding with a cache, on the weights of one model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from veriformer.bench import targets
from veriformer.bench.document import Peer
from veriformer.bench.peers import hugging_face
from veriformer.bench.peers.case import Course, Question, at_least
from veriformer.bench.peers.ceilings import reading
from veriformer.bench.peers.race import OURS
from veriformer.bench.peers.sizes import Sizes

FLOOR = "one reading of the weights"
_PROMPT, _NEW = 16, 64
GENERATE = "transformers generate"


@dataclass(frozen=True)
class Decoding:
    """The same model on both sides, and a prompt."""

    peer: Any
    model: Any
    prompt: torch.Tensor
    new: int

    def ours(self) -> torch.Tensor:
        """Greedy, with our static cache."""
        return targets.generate(self.model, self.prompt, self.new)

    def theirs(self) -> torch.Tensor:
        """Greedy, as the library does by default."""
        real = torch.ones_like(self.prompt)
        return self.peer.generate(  # type: ignore[no-any-return]
            self.prompt, attention_mask=real, max_new_tokens=self.new, do_sample=False, use_cache=True
        )


def decoding(sizes: Sizes) -> Decoding:
    """A model of transformers and ours with its weights. Raises MissingError."""
    peer = hugging_face.gpt2(sizes).eval()
    prompt = torch.randint(sizes.vocabulary, (sizes.batch, _PROMPT))
    return Decoding(peer, targets.from_peer(peer), prompt, _NEW)


def cached(name: str, sizes: Sizes, course: Course) -> Iterator[Peer]:
    """Ours beside `generate`, if both write the same; and its time per token beside the floor that memory sets."""
    what = f"decoding with a cache, batch {sizes.batch}, vocabulary {sizes.vocabulary}"
    against = Question(case=name, what=what, theirs=GENERATE, quantity="tokens/s", goal=at_least(2.0))
    floor = Question(case=name, what=what, theirs=FLOOR, quantity="ms per token")
    try:
        both = decoding(sizes)
    except hugging_face.MissingError as error:
        yield against.unanswered(error)
        return
    if not torch.equal(both.ours(), both.theirs()):
        yield against.unanswered("the two sides write different tokens from the same weights: nothing to compare")
        return
    sides = {OURS: both.ours, GENERATE: both.theirs, FLOOR: reading(sizes.weight_bytes)}
    times, conditions = course.race(what, sides)
    tokens = {side: sizes.batch * both.new / times.of(side) for side in (OURS, GENERATE)}
    yield against.timed(times.speed(GENERATE), tokens, conditions)
    each = {OURS: 1e3 * times.of(OURS) / both.new, FLOOR: 1e3 * times.of(FLOOR)}
    yield floor.timed(times.time(FLOOR, factor=both.new), each, conditions)
