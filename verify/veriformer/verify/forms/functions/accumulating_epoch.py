"""Epochs of training that accumulate gradients: a loop over batches that steps an optimizer after so many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import roles

_NEEDED = {
    "model": ("model", "net", "network"),
    "loader": ("loader", "dataloader", "data_loader", "train_loader", "train_dataloader", "batches", "data"),
    "criterion": ("criterion", "loss_fn", "loss_func", "loss_function"),
    "optimizer": ("optimizer", "optim", "opt"),
    "every": (
        *("accum_steps", "accumulation_steps", "gradient_accumulation_steps", "grad_accum_steps", "accum_iter"),
        *("accumulate_steps", "grad_accumulation_steps", "accumulation", "accumulate_grad_batches", "n_accum"),
    ),
}
_OPTIONS = {"device": ("device",), "epoch": ("epoch",)}
_MEAN = "the criterion gives what makes the mean over all tokens of a mean over its batches"


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_function or "train" not in {*candidate.words, *_verbs(candidate)}:
        return None
    return None if roles(candidate.parameters, _NEEDED, _OPTIONS) is None else Match(True, told=(_MEAN,))


def _verbs(candidate: Candidate) -> set[str]:
    """Return the train that a word stands for, as in ``training`` and ``trainer``."""
    return {"train" for word in candidate.words if word in ("training", "trainer", "fit")}


class _Batch(nn.Module):
    """A model that gives its input, the number of a batch: of which the criterion knows the loss."""

    def __init__(self, params: Sequence[Tensor]) -> None:
        super().__init__()
        self.own = list(params)

    def parameters(self, recurse: bool = True) -> Any:
        """Yield the parameters that the loss depends on."""
        return iter(self.own)

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class _Recorder:
    """An optimizer that keeps the gradients of each step and changes nothing."""

    def __init__(self, params: Sequence[Tensor]) -> None:
        self.params, self.steps = params, list[list[Tensor]]()
        self.param_groups = [{"params": list(params), "lr": 0.0}]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear all gradients."""
        for p in self.params:
            p.grad = None

    def step(self) -> None:
        """Keep the gradients."""
        self.steps.append([torch.zeros_like(p) if p.grad is None else p.grad.detach().clone() for p in self.params])


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    names = roles(candidate.parameters, _NEEDED, _OPTIONS) or {}

    def steps(loss_of: Callable[[int], Tensor], params: Sequence[Tensor], count: int, every: int) -> list[list[Tensor]]:
        recorder = _Recorder(params)
        batches = [(torch.tensor([i]), torch.tensor([i])) for i in range(count)]
        given = {
            "model": _Batch(params),
            "loader": batches,
            "criterion": lambda found, target: every * loss_of(int(target)),
            "optimizer": recorder,
            "every": every,
            "device": torch.device("cpu"),
            "epoch": 0,
        }
        candidate.thing(**{name: given[role] for role, name in names.items()})
        return recorder.steps

    def call(
        loss_fn: Callable[[Any], tuple[Tensor, int]], params: Sequence[Tensor], micro_batches: Iterable[Any]
    ) -> list[Tensor]:
        batches = list(micro_batches)
        n, before = len(batches), [p.grad for p in params]
        if not n:
            raise NotOffered("micro_batches: one at least")
        total = sum(int(loss_fn(batch)[1]) for batch in batches)
        if not total:
            raise NotOffered("micro_batches: one token at least counts")

        def loss_of(i: int) -> Tensor:
            return loss_fn(batches[i % n])[0] / total

        try:
            _clear(params)
            twice = steps(loss_of, params, 2 * n, n)  # of the second window nothing of the first is left
            _clear(params)
            rest = steps(loss_of, params, n, n + 1)  # too few for a step but the last one, where there is such
        finally:
            for p, grad in zip(params, before, strict=True):
                p.grad = grad
        if len(twice) != 2:
            raise NotOffered(f"expected a step after each {n} batches, got {len(twice)} steps")
        every = [*twice, *rest[-1:]]
        return [every[(n + i) % len(every)][i] for i in range(len(params))]  # parameters in turn: all steps are judged

    return as_operation("accumulate_gradients", call)


def _clear(params: Sequence[Tensor]) -> None:
    for p in params:
        p.grad = None


FORM = Form(
    name="functions/accumulating_epoch",
    operation="accumulate_gradients",
    says="train(model, loader, criterion, optimizer, accum_steps): the gradients at each step of the optimizer",
    match=_match,
    bind=_bind,
    closed=True,
)
