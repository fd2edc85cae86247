"""The schedules as PyTorch's schedulers, which set an option of every parameter group before each step."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler

from veriformer.impl import checks
from veriformer.impl.optimization.adam import Adam
from veriformer.impl.optimization.optimizer import decay_rate
from veriformer.impl.optimization.schedules import noam, warmup, warmup_cosine


class ScaledRate(LRScheduler):
    """Each group's own learning rate, times a function of the number of steps that were taken.

    Create it after the optimizer, and call its `step()` once after each `optimizer.step()`: not once per micro-batch.
    """

    def __init__(self, optimizer: Any, scale: Callable[[int], float]) -> None:
        self._scale = scale
        super().__init__(optimizer)

    def get_lr(self) -> list[float | Tensor]:
        """Return the rates of the step that comes next."""
        scale = self._scale(self.last_epoch)
        return [float(base) * scale for base in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the function, which belongs to the program and not to the run."""
        return {key: value for key, value in super().state_dict().items() if key != "_scale"}


class Warmup(ScaledRate):
    """`warmup` to each group's own rate; as there, the first step has the rate 0."""

    def __init__(self, optimizer: Any, warmup_steps: int) -> None:
        super().__init__(optimizer, lambda t: warmup(t, max_lr=1.0, warmup_steps=warmup_steps))


class WarmupCosine(ScaledRate):
    """`warmup_cosine` with each group's own rate as the largest."""

    def __init__(self, optimizer: Any, warmup_steps: int, total_steps: int) -> None:
        super().__init__(
            optimizer, lambda t: warmup_cosine(t, max_lr=1.0, warmup_steps=warmup_steps, total_steps=total_steps)
        )


class Noam(ScaledRate):
    """`noam`, times each group's own rate, which is then a factor (1 for the paper's); the first step is step 1."""

    def __init__(self, optimizer: Any, d_model: int, warmup_steps: int) -> None:
        super().__init__(optimizer, lambda t: noam(t + 1, d_model=d_model, warmup_steps=warmup_steps))


class Beta2Warmup:
    r"""Moves β₂ of Adam or AdamW from `first` to the group's own in a straight line over `warmup_steps` steps.

    The averages stay unbiased on the way: the optimizer corrects them by the product of the β₂ they have met. Call
    `step()` once after each `optimizer.step()`. Documents 000 and 001, section 9.2.
    """

    def __init__(self, optimizer: Adam, first: float, warmup_steps: int) -> None:
        self.optimizer = optimizer
        self.first = decay_rate("first", first)
        self.warmup_steps = checks.integer("warmup_steps", warmup_steps, minimum=0)
        self.final = [group["betas"][1] for group in optimizer.param_groups]
        self.steps = 0
        self._set()

    def step(self) -> None:
        """Count one step, and set β₂ for the next."""
        self.steps += 1
        self._set()

    def state_dict(self) -> dict[str, Any]:
        """Return the count, and where β₂ is going."""
        return {"steps": self.steps, "final": list(self.final)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a saved count."""
        self.steps, self.final = state_dict["steps"], list(state_dict["final"])
        self._set()

    def _set(self) -> None:
        share = warmup(self.steps, max_lr=1.0, warmup_steps=self.warmup_steps)
        for group, final in zip(self.optimizer.param_groups, self.final, strict=True):
            group["betas"] = (group["betas"][0], self.first + share * (final - self.first))
