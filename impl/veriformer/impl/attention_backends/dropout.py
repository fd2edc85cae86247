"""Dropout of attention weights."""

from dataclasses import dataclass

import torch
from torch import Tensor


def keep_mask(shape: tuple[int, ...], p: float, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """Draw a bool tensor, True with probability `1 - p`, the same in every dtype of attention."""
    return torch.rand(shape, generator=generator, device=device, dtype=torch.float32) >= p


def dropout_scale(p: float) -> float:
    """Return 1 / (1 − p), which keeps the expectation; at p = 1 nothing survives, and nothing needs scaling."""
    return 0.0 if p == 1 else 1 / (1 - p)


@dataclass(frozen=True)
class Replay:
    """A generator's state before forward, from which backward draws the same masks again instead of storing them."""

    device: torch.device
    state: Tensor | None

    @classmethod
    def of(cls, generator: torch.Generator | None, device: torch.device) -> "Replay":
        """Remember where `generator`, or the global one of `device`, stands; meta tensors have none."""
        if device.type == "meta":
            return cls(device, None)
        return cls(device, (generator or _global_generator(device)).get_state())

    def generator(self) -> torch.Generator | None:
        """Return a new generator in the remembered state."""
        return None if self.state is None else torch.Generator(self.device).set_state(self.state)


def _global_generator(device: torch.device) -> torch.Generator:
    if device.type == "cpu":
        return torch.default_generator
    index = torch.accelerator.current_device_index() if device.index is None else device.index
    return torch.get_device_module(device).default_generators[index]  # type: ignore[no-any-return]
