"""A training step: forward, backward and AdamW on one batch of random tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from veriformer.bench import targets
from veriformer.bench.document import Peer
from veriformer.bench.peers import models, roofline
from veriformer.bench.peers.case import Question, Schedule, at_least, at_most
from veriformer.bench.peers.interleaved_benchmark import OURS, Run
from veriformer.bench.peers.models import PlainGPT
from veriformer.bench.peers.sizes import Sizes

PLAIN = "torch.nn"
_SPEED = "tokens/s"
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Step:
    """Training step, repeated on the same batch."""

    loss: Loss
    optimizer: Any
    ids: torch.Tensor
    labels: torch.Tensor

    def __call__(self) -> None:
        """Take it: in bfloat16 by autocast on a GPU."""
        with torch.autocast(self.ids.device.type, torch.bfloat16, enabled=self.ids.is_cuda):
            loss = self.loss(self.ids, self.labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def ours(sizes: Sizes, compiled: bool = False) -> Step:
    """Our model, loss and AdamW."""
    loss = targets.gpt_loss(
        vocabulary=sizes.vocabulary, width=sizes.width, layers=sizes.layers, heads=sizes.heads, length=sizes.length
    )
    return _step(sizes, loss, targets.adamw(loss.parameters()), compiled)


def plain(sizes: Sizes, compiled: bool = False) -> Step:
    """The baseline with PyTorch's fused AdamW."""
    model = PlainGPT(sizes)
    return _step(sizes, model, _fused_adamw(model), compiled)


def theirs(sizes: Sizes) -> Step:
    """The model of transformers with PyTorch's fused AdamW. Raises MissingError."""
    model = models.gpt2(sizes)

    def loss(ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return model(ids, labels=labels, use_cache=False).loss  # type: ignore[no-any-return]

    return Step(loss, _fused_adamw(model), *_batch(sizes))


def x_transformer(sizes: Sizes) -> Step:
    """The model of x-transformers with PyTorch's fused AdamW. Raises MissingError."""
    model = models.decoder(sizes)

    def loss(ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())

    return Step(loss, _fused_adamw(model), *_batch(sizes))


def _step(sizes: Sizes, model: torch.nn.Module, optimizer: Any, compiled: bool) -> Step:
    return Step(torch.compile(model) if compiled else model, optimizer, *_batch(sizes))


def _fused_adamw(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def _batch(sizes: Sizes) -> tuple[torch.Tensor, torch.Tensor]:
    text = torch.randint(sizes.vocabulary, (sizes.batch, sizes.length + 1))
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


def eager(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Ours beside the baseline and the model of transformers, and as a fraction of what products reach here."""
    what = f"training step of {_described(sizes)}, eager"
    sides: dict[str, Run] = {OURS: ours(sizes), PLAIN: plain(sizes), roofline.PRODUCT: roofline.product()}
    against = Question(case=name, what=what, theirs=models.GPT2, quantity=_SPEED, goal=at_least(1.15))
    further = Question(case=name, what=what, theirs=models.X_TRANSFORMERS, quantity=_SPEED)
    for question, make in ((against, theirs), (further, x_transformer)):
        try:
            sides[question.theirs] = make(sizes)
        except models.MissingError as error:
            yield question.unanswered(error)
    if torch.get_default_device().type == "cuda":
        memory = Question(case=name, what=what, theirs=PLAIN, quantity="peak bytes", goal=at_most(0.5))
        yield memory.counted(*(_peak_bytes(make, sizes) for make in (ours, plain)))
    times, conditions = schedule.run(what, sides)
    rates = {side: sizes.tokens / times.of(side) for side in sides}
    for question in (
        Question(case=name, what=what, theirs=PLAIN, quantity=_SPEED, goal=at_least(1.0)),
        against,
        further,
    ):
        if question.theirs in sides:
            shown = {side: rates[side] for side in (OURS, question.theirs)}
            yield question.timed(times.speed(question.theirs), shown, conditions)
    flops = {OURS: sizes.training_flops, roofline.PRODUCT: roofline.product_flops()}
    ceiling = Question(case=name, what=what, theirs=roofline.PRODUCT, quantity="GFLOP/s")
    fraction = times.speed(roofline.PRODUCT, factor=flops[OURS] / flops[roofline.PRODUCT])
    yield ceiling.timed(fraction, {side: n / times.of(side) / 1e9 for side, n in flops.items()}, conditions)


def compiled(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Ours beside the baseline, each compiled by PyTorch."""
    what = f"training step of {_described(sizes)}, compiled"
    question = Question(case=name, what=what, theirs=PLAIN, quantity=_SPEED, goal=at_least(1.0))
    try:
        times, conditions = schedule.run(what, {OURS: ours(sizes, compiled=True), PLAIN: plain(sizes, compiled=True)})
    except Exception as error:  # whatever a compiler raises on a machine where it finds no tools
        yield question.unanswered(f"{type(error).__name__}: {error}")
        return
    shown = {side: sizes.tokens / times.of(side) for side in (OURS, PLAIN)}
    yield question.timed(times.speed(PLAIN), shown, conditions)


def _peak_bytes(make: Callable[[Sizes], Step], sizes: Sizes) -> int:
    """Return the bytes that a GPU held at the worst moment of a step, beside what it held before."""
    before = torch.cuda.memory_allocated()
    step = make(sizes)
    step()
    torch.cuda.reset_peak_memory_stats()
    step()
    return torch.cuda.max_memory_allocated() - before


def _described(sizes: Sizes) -> str:
    return f"{sizes.layers} layers, width {sizes.width}, {sizes.batch} x {sizes.length} tokens"
