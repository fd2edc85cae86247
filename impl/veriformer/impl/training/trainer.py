"""The training loop: one step at a time, each of them exact, whatever the number of micro-batches and processes.

Gradients are clipped in place: tied parameters once, shards of all processes together, and nothing where a gradient is
broken.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.optimization.adam import adamw
from veriformer.impl.optimization.clipping import clip_grad_norm
from veriformer.impl.optimization.schedules import warmup_cosine
from veriformer.impl.training.distributed import Team, whole
from veriformer.impl.training.objective import Objective, count
from veriformer.impl.training.packing import Batches

PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Training options: `steps` of `accumulate` micro-batches; the rate warms up and falls to 0 along a cosine."""

    steps: int
    accumulate: int = 1
    lr: float = 1e-3
    warmup_steps: int = 20
    betas: tuple[float, float] = (0.9, 0.99)
    weight_decay: float = 0.1
    max_norm: float = 1.0
    precision: str = "fp32"

    def __post_init__(self) -> None:
        checks.integer("accumulate", self.accumulate, minimum=1)
        checks.integer(
            "steps", self.steps, minimum=max(1, checks.integer("warmup_steps", self.warmup_steps, minimum=0))
        )
        checks.nonnegative("max_norm", self.max_norm)
        checks.choice("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class Report:
    """Report of one step: the mean loss over its `tokens`, the norm of the gradient before clipping, and the rate."""

    step: int
    loss: float
    norm: float
    lr: float
    tokens: int


class Trainer:
    """A model, its optimizer and its data, and how far they have come."""

    def __init__(self, model: Decoder, batches: Batches, config: TrainingConfig, team: Team | None = None) -> None:
        self.model, self.batches, self.config, self.team = model, batches, config, team or Team()
        self.device = model.embedding.tokens.weight.device
        self.objective = self.team.share(Objective(model))
        self.optimizer = adamw(_groups(model, config.weight_decay), config.lr, betas=config.betas)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=config.precision == "fp16")
        self.step_count = 0

    def step(self) -> Report:
        """Take one step: the gradient of the mean loss over all tokens of all micro-batches of all processes.

        The tokens are counted first, so that each micro-batch's sum of losses is divided by the number for all. In this
        order: scale the loss, backward, unscale, clip, step (not where a gradient is not finite), update the scale.
        """
        c, team = self.config, self.team
        self.model.train()
        micro_batches = [next(self.batches) for _ in range(c.accumulate)]  # counted where they are: a GPU need not wait
        tokens = int(team.sum(sum(count(batch) for batch in micro_batches)))
        total = torch.zeros((), device=self.device)
        for i, batch in enumerate(rows.to(self.device) for rows in micro_batches):
            team.last_of(self.objective, i == c.accumulate - 1)
            with self.autocast():
                loss = self.objective(batch.ids, batch.labels, batch.documents) / max(tokens, 1)
            # The gradients of all processes are averaged, where they should be added.
            self.scaler.scale(loss * team.world).backward()
            total += loss.detach()
        norm, rate = self._update()
        self.step_count += 1
        return Report(self.step_count, team.sum(float(total)), float(norm), rate, tokens)

    def run(self) -> Iterator[Report]:
        """Take all the steps that are left."""
        while self.step_count < self.config.steps:
            yield self.step()

    def autocast(self) -> AbstractContextManager[object]:
        """Compute products in the configured precision; parameters and their averages stay as they are."""
        dtype = PRECISIONS[self.config.precision]
        return nullcontext() if dtype is None else torch.autocast(self.device.type, dtype)

    def _update(self) -> tuple[Tensor, float]:
        c = self.config
        # The schedule starts at 0, and a step of length 0 would be wasted.
        rate = warmup_cosine(self.step_count + 1, max_lr=c.lr, warmup_steps=c.warmup_steps, total_steps=c.steps + 1)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.scaler.unscale_(self.optimizer)
        norm = clip_gradients(self.model.parameters(), c.max_norm)
        if self.scaler.is_enabled() or bool(norm.isfinite()):
            self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return norm, rate


def _groups(model: Decoder, weight_decay: float) -> list[dict[str, object]]:
    """Let matrices decay, and neither biases nor norms."""
    params = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = ([p for p in params if (p.ndim > 1) == many] for many in (True, False))
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


@torch.no_grad()
def clip_gradients(params: Iterable[Tensor], max_norm: float) -> Tensor:
    """Shorten the gradients of `params` together to `max_norm` (equation 11), and return their norm, 0-d.

    A parameter that appears twice counts once. Of sharded gradients the norm is that of the whole. Where the norm is
    not finite, gradients are left as they are: such a step is to be skipped, and NaN would spread if it scaled them.
    """
    grads: list[Any] = [p.grad for p in {id(p): p for p in params}.values() if p.grad is not None]
    if not any(hasattr(g, "full_tensor") for g in grads):
        clipped, norm = clip_grad_norm(grads, max_norm)
        if bool(norm.isfinite()):
            torch._foreach_copy_(grads, clipped)
        return norm
    norm = whole(torch.nn.utils.get_total_norm(grads))
    if bool(norm.isfinite()) and float(norm) > max_norm:
        torch._foreach_mul_(grads, max_norm / float(norm))
    return norm
