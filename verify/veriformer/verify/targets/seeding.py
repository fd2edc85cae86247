"""PyTorch's global generators: seeding them, and libraries that draw from them alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


def seed_generators(seed: int) -> None:
    """Seed the generator of the CPU, and those of GPUs that are in use.

    ``torch.manual_seed`` also notes, for every kind of device that the process has not begun to use, the call and the
    whole stack that it comes from: half a millisecond each time, and memory that is never given back.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


@contextlib.contextmanager
def seed_from(generator: torch.Generator | None) -> Iterator[None]:
    """Seed the global generator from the one given, which moves on, and put it back; None leaves it to itself."""
    if generator is None:
        yield
        return
    with torch.random.fork_rng():
        seed_generators(int(torch.randint(2**62, (), generator=generator)))
        yield
