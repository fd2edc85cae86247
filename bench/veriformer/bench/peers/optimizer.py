"""AdamW step over the parameters of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from veriformer.bench import targets
from veriformer.bench.document import Peer
from veriformer.bench.peers.case import Question, Schedule, at_most
from veriformer.bench.peers.interleaved_benchmark import OURS, Run
from veriformer.bench.peers.models import PlainGPT
from veriformer.bench.peers.sizes import Sizes

FOREACH = "torch.optim.AdamW(foreach=True)"


def adamw(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Ours beside PyTorch's, each with parameters and gradients of its own."""
    what = f"AdamW step over {sizes.parameters} parameters"
    question = Question(case=name, what=what, theirs=FOREACH, quantity="ms", goal=at_most(1.0))
    params = {side: _parameters(sizes) for side in (OURS, FOREACH)}
    sides: dict[str, Run] = {
        OURS: targets.adamw(params[OURS]).step,
        FOREACH: torch.optim.AdamW(params[FOREACH], lr=1e-3, foreach=True).step,
    }
    times, conditions = schedule.run(what, sides)
    yield question.timed(times.time(FOREACH), {side: 1e3 * times.of(side) for side in sides}, conditions)


def _parameters(sizes: Sizes) -> list[Any]:
    params = list(PlainGPT(sizes).parameters())
    for p in params:
        p.grad = torch.randn_like(p)
    return params
