"""Decoding with a cache, on the weights of one model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from veriformer.bench import targets
from veriformer.bench.document import Peer
from veriformer.bench.peers import models
from veriformer.bench.peers.case import Question, Schedule, at_least
from veriformer.bench.peers.interleaved_benchmark import OURS
from veriformer.bench.peers.roofline import reading
from veriformer.bench.peers.sizes import Sizes

FLOOR = "one reading of the weights"
EAGER = "ours, eager"
_PROMPT, _NEW = 16, 64
GENERATE = "transformers generate"


@dataclass(frozen=True)
class Decoding:
    """Decoding of a prompt by two implementations of one model."""

    peer: Any
    model: Any
    compiled: Any
    prompt: torch.Tensor
    new: int

    def ours(self) -> torch.Tensor:
        """Greedy, with our static cache, each token by one compiled graph."""
        return targets.generate(self.compiled, self.prompt, self.new)

    def eager(self) -> torch.Tensor:
        """Greedy, with our static cache, operation by operation."""
        return targets.generate(self.model, self.prompt, self.new)

    def theirs(self) -> torch.Tensor:
        """Greedy, as the library does by default."""
        real = torch.ones_like(self.prompt)
        return self.peer.generate(  # type: ignore[no-any-return]
            self.prompt, attention_mask=real, max_new_tokens=self.new, do_sample=False, use_cache=True
        )


def decoding(sizes: Sizes) -> Decoding:
    """A model of transformers and ours with its weights. Raises MissingError."""
    peer = models.gpt2(sizes).eval().to(getattr(torch, sizes.dtype))
    prompt = torch.randint(sizes.vocabulary, (sizes.batch, _PROMPT))
    model = targets.from_transformers(peer)
    return Decoding(peer, model, targets.compiled_decoder(model), prompt, _NEW)


def cached(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Ours beside `generate` and beside itself uncompiled, if all write the same; and beside the floor of memory."""
    what = f"decoding with a cache, batch {sizes.batch}, vocabulary {sizes.vocabulary}"
    against = Question(case=name, what=what, theirs=GENERATE, quantity="tokens/s", goal=at_least(2.0))
    uncompiled = Question(case=name, what=what, theirs=EAGER, quantity="tokens/s")
    floor = Question(case=name, what=what, theirs=FLOOR, quantity="ms per token")
    try:
        both = decoding(sizes)
        schedule.tell(f"{what}: compiling")
        same = all(torch.equal(ours(), both.theirs()) for ours in (both.ours, both.eager))
    except models.MissingError as error:
        yield against.unanswered(error)
        return
    except Exception as error:  # whatever a compiler raises on a machine where it finds no tools
        yield against.unanswered(f"{type(error).__name__}: {error}")
        return
    if not same:
        yield against.unanswered("the sides write different tokens from the same weights: nothing to compare")
        return
    sides = {OURS: both.ours, EAGER: both.eager, GENERATE: both.theirs, FLOOR: reading(sizes.weight_bytes)}
    times, conditions = schedule.run(what, sides)
    tokens = {side: sizes.batch * both.new / times.of(side) for side in (OURS, EAGER, GENERATE)}
    for question, side in ((against, GENERATE), (uncompiled, EAGER)):
        yield question.timed(times.speed(side), {k: tokens[k] for k in (OURS, side)}, conditions)
    each = {OURS: 1e3 * times.of(OURS) / both.new, FLOOR: 1e3 * times.of(FLOOR)}
    yield floor.timed(times.time(FLOOR, factor=both.new), each, conditions)
