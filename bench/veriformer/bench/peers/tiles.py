"""Attention in plain PyTorch beside PyTorch's own kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn.functional import scaled_dot_product_attention

from veriformer.bench.calls import Attention
from veriformer.bench.document import Peer
from veriformer.bench.peers.case import Question, Schedule, at_most
from veriformer.bench.peers.interleaved_benchmark import OURS, Run
from veriformer.bench.targets import find

SDPA = "SDPA"


def tiled(name: str, shape: tuple[int, int, int, int], schedule: Schedule) -> Iterator[Peer]:
    """Forward and backward, full and causal, of q, k, v `[B, H, n, d]`."""
    for passes, ready, goal in (("forward", _forward, at_most(2.0)), ("backward", _backward, at_most(3.0))):
        for is_causal in (False, True):
            what = f"attention {passes}, {'causal' if is_causal else 'full'}, n = {shape[2]}"
            question = Question(case=name, what=what, theirs=SDPA, quantity="ms", goal=goal)
            baselines: dict[str, Attention] = {OURS: find("impl:tiled").backend[0], SDPA: scaled_dot_product_attention}
            sides = {side: ready(attention, shape, is_causal) for side, attention in baselines.items()}
            times, conditions = schedule.run(what, sides)
            yield question.timed(times.time(SDPA), {side: 1e3 * times.of(side) for side in sides}, conditions)


Ready = Callable[[Attention, tuple[int, int, int, int], bool], Run]


def _forward(attention: Attention, shape: tuple[int, int, int, int], is_causal: bool) -> Run:
    q, k, v = (torch.randn(shape) for _ in range(3))

    def run() -> object:
        with torch.no_grad():
            return attention(q, k, v, is_causal=is_causal)

    return run


def _backward(attention: Attention, shape: tuple[int, int, int, int], is_causal: bool) -> Run:
    q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
    o, g = attention(q, k, v, is_causal=is_causal), torch.randn(shape)
    return lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True)
