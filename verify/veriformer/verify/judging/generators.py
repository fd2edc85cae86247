"""PyTorch's global generators."""

from __future__ import annotations

import torch


def seed_generators(seed: int) -> None:
    """Seed the generator of the CPU, and those of GPUs that are in use.

    ``torch.manual_seed`` also notes, for every kind of device that the process has not begun to use, the call and the
    whole stack that it comes from: half a millisecond each time, and memory that is never given back.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
