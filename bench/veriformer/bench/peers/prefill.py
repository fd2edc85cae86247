"""Reading a prompt into a cache, on the weights of one model."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from veriformer.bench import targets
from veriformer.bench.document import Peer
from veriformer.bench.models import calls
from veriformer.bench.peers import models
from veriformer.bench.peers.case import Question, Schedule
from veriformer.bench.peers.interleaved_benchmark import OURS, Run
from veriformer.bench.peers.sizes import Sizes


def prompt(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Ours beside the model of transformers, if both give the same next token; nothing is compiled."""
    what = f"prefill of {sizes.batch} x {sizes.length} tokens, eager"
    question = Question(case=name, what=what, theirs=models.GPT2, quantity="tokens/s")
    try:
        peer = models.gpt2(sizes).eval().to(getattr(torch, sizes.dtype))
    except models.MissingError as error:
        yield question.unanswered(error)
        return
    model, ids = targets.from_transformers(peer).eval(), torch.randint(sizes.vocabulary, (sizes.batch, sizes.length))

    def read(side: object) -> torch.Tensor:
        with torch.no_grad():
            return calls.logits(calls.cached(side, ids))[:, -1].argmax(-1)

    sides: dict[str, Run] = {OURS: lambda: read(model), models.GPT2: lambda: read(peer)}
    if not torch.equal(read(model), read(peer)):
        yield question.unanswered("the sides choose different tokens from the same weights: nothing to compare")
        return
    times, conditions = schedule.run(what, sides)
    shown = {side: sizes.tokens / times.of(side) for side in sides}
    yield question.timed(times.speed(models.GPT2), shown, conditions)
