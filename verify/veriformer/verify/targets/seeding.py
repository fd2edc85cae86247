"""Randomness of libraries that draw from PyTorch's global generator alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from veriformer.verify.judging.generators import seed_generators


@contextlib.contextmanager
def seeded(generator: torch.Generator | None) -> Iterator[None]:
    """Seed the global generator from the one given, which moves on, and put it back; None leaves it to itself."""
    if generator is None:
        yield
        return
    with torch.random.fork_rng():
        seed_generators(int(torch.randint(2**62, (), generator=generator)))
        yield
