"""Protocols of the contract: optimizer and key-value cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor


class Optimizer(Protocol):
    """Optimizer that updates its parameters in place by their ``grad``; one whose ``grad`` is None is skipped."""

    def step(self) -> Any:
        """Take one step."""

    def zero_grad(self) -> Any:
        """Clear the gradients of all parameters."""

    def state_dict(self) -> Mapping[str, Any]:
        """Return the state from which another optimizer can resume."""

    def load_state_dict(self, state: Any) -> Any:
        """Resume from the state of another optimizer."""


class Cache(Protocol):
    """Key-value cache of the tokens so far; an update beyond ``max_length`` is refused."""

    @property
    def length(self) -> int:
        """Number of cached positions."""

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens; return all keys and values then held."""

    def reorder(self, index: Tensor) -> Any:
        """Reorder the batch in place: row i becomes the former row index[i]."""

    def reset(self) -> Any:
        """Remove all tokens."""
