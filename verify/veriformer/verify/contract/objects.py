"""The objects of the contract: what a caller may ask of an optimizer and of a cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor


class Optimizer(Protocol):
    """Changes its parameters in place by their ``grad``; a parameter whose ``grad`` is None is skipped."""

    def step(self) -> Any:
        """Take one step."""

    def zero_grad(self) -> Any:
        """Clear the gradients of all parameters."""

    def state_dict(self) -> Mapping[str, Any]:
        """What another optimizer needs to go on from here."""

    def load_state_dict(self, state: Any) -> Any:
        """Go on from where another optimizer was."""


class Cache(Protocol):
    """The keys and values of the tokens so far; more of them than it has room for are refused."""

    @property
    def length(self) -> int:
        """How many tokens it holds."""

    def update(self, k_new: Tensor, v_new: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens; all that it then holds."""

    def reorder(self, index: Tensor) -> Any:
        """Let row i be what row index[i] was."""

    def reset(self) -> Any:
        """Forget all tokens."""
