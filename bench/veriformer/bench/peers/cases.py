"""Cases: ours against others in training, decoding, prefill and single operations, and this machine's ceilings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from veriformer.bench import targets
from veriformer.bench.document import Goal, Peer
from veriformer.bench.metered_costs import Attention, NotCountable, count_whole_peak_bytes
from veriformer.bench.models import calls
from veriformer.bench.peers import models
from veriformer.bench.peers.catalogue import Sizes
from veriformer.bench.peers.models import PlainGPT
from veriformer.bench.peers.turns import (
    OURS,
    Question,
    Run,
    Schedule,
    at_least,
    at_most,
    interleaved_benchmark,
)
from veriformer.bench.timing.workloads import Workload, family

PLAIN, SDPA, TORCH = "torch.nn", "SDPA", "torch.nn.functional"
FOREACH = "torch.optim.AdamW(foreach=True)"
PRODUCT, FLOOR = "matrix product", "one reading of the weights"
EAGER, GENERATE = "ours, eager", "transformers generate"
COMPILED_GENERATE = "transformers generate, static cache compiled"
_SPEED = "tokens/s"
_SIDE, _SIDE_ON_GPU = 1024, 8192
_PROMPT, _NEW = 16, 64


# Roofline of this processor, measured in the same turns


def product_flops() -> int:
    """Return the FLOPs of `product`."""
    return 2 * (_SIDE_ON_GPU if torch.get_default_device().type == "cuda" else _SIDE) ** 3


def product() -> Run:
    """Return a product of two square matrices that fit into the cache, by the fastest library of PyTorch's."""
    on_gpu = torch.get_default_device().type == "cuda"
    side, dtype = (_SIDE_ON_GPU, torch.bfloat16) if on_gpu else (_SIDE, torch.float32)
    a, b, out = (torch.randn(side, side, dtype=dtype) for _ in range(3))
    runs: list[Run] = [lambda: torch.mm(a, b, out=out)]
    if a.is_cpu and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        runs.append(lambda: torch.ops.mkldnn._linear_pointwise(a, b.mT, None, "none", [], ""))
    times = interleaved_benchmark({OURS: runs[0]} | {str(i): run for i, run in enumerate(runs)}, rounds=6)
    return min(enumerate(runs), key=lambda pair: times.of(str(pair[0])))[1]


def reading(bytes_: int) -> Run:
    """Read so many bytes once, for a sum of squares."""
    x = torch.randn(bytes_ // 4)
    return lambda: torch.dot(x, x)


# Training


@dataclass(frozen=True)
class Step:
    """Training step, repeated on the same batch."""

    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
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
    """Return a step of our model, loss and AdamW."""
    loss = targets.gpt_loss(
        vocabulary=sizes.vocabulary, width=sizes.width, layers=sizes.layers, heads=sizes.heads, length=sizes.length
    )
    return _step(sizes, torch.compile(loss) if compiled else loss, targets.adamw(loss.parameters()))


def plain(sizes: Sizes, compiled: bool = False) -> Step:
    """Return a step of the baseline with PyTorch's fused AdamW."""
    model = PlainGPT(sizes)
    return _step(sizes, torch.compile(model) if compiled else model, _fused_adamw(model))


def theirs(sizes: Sizes) -> Step:
    """Return a step of the model of transformers with PyTorch's fused AdamW. Raises MissingError."""
    model = models.gpt2(sizes)
    return _step(sizes, lambda ids, labels: model(ids, labels=labels, use_cache=False).loss, _fused_adamw(model))


def x_transformer(sizes: Sizes) -> Step:
    """Return a step of the model of x-transformers with PyTorch's fused AdamW. Raises MissingError."""
    model = models.decoder(sizes)

    def loss(ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return cross_entropy(model(ids).flatten(0, 1), labels.flatten())

    return _step(sizes, loss, _fused_adamw(model))


def _step(sizes: Sizes, loss: Any, optimizer: Any) -> Step:
    text = torch.randint(sizes.vocabulary, (sizes.batch, sizes.length + 1))
    return Step(loss, optimizer, text[:, :-1].contiguous(), text[:, 1:].contiguous())


def _fused_adamw(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def eager(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Compare ours with the baseline and other libraries' models, and with what products reach here."""
    what = f"training step of {_described(sizes)}, eager"
    ask = partial(Question, case=name, what=what)
    sides: dict[str, Run] = {OURS: ours(sizes), PLAIN: plain(sizes), PRODUCT: product()}
    against = ask(theirs=models.GPT2, quantity=_SPEED, goal=at_least(1.15))
    further = ask(theirs=models.X_TRANSFORMERS, quantity=_SPEED)
    for question, make in ((against, theirs), (further, x_transformer)):
        try:
            sides[question.theirs] = make(sizes)
        except models.MissingError as error:
            yield question.unanswered(error)
    if torch.get_default_device().type == "cuda":
        memory = ask(theirs=PLAIN, quantity="peak bytes", goal=at_most(0.5))
        yield memory.counted(*(_peak_bytes_on_gpu(make, sizes) for make in (ours, plain)))
    times, conditions = timed = schedule.run(what, sides)
    for question in (ask(theirs=PLAIN, quantity=_SPEED, goal=at_least(1.0)), against, further):
        if question.theirs in sides:
            yield question.rate(timed, sizes.tokens)
    flops = {OURS: sizes.training_flops, PRODUCT: product_flops()}
    fraction = times.speed(PRODUCT, factor=flops[OURS] / flops[PRODUCT])
    shown = {side: n / times.of(side) / 1e9 for side, n in flops.items()}
    yield ask(theirs=PRODUCT, quantity="GFLOP/s").timed(fraction, shown, conditions)


def compiled(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Compare ours with the baseline, each compiled by PyTorch."""
    what = f"training step of {_described(sizes)}, compiled"
    question = Question(case=name, what=what, theirs=PLAIN, quantity=_SPEED, goal=at_least(1.0))
    try:
        timed = schedule.run(what, {OURS: ours(sizes, compiled=True), PLAIN: plain(sizes, compiled=True)})
    except Exception as error:  # whatever a compiler raises on a machine where it finds no tools
        yield question.unanswered(f"{type(error).__name__}: {error}")
        return
    yield question.rate(timed, sizes.tokens)


def chunked(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Compare ours, whose logits of many classes never exist all at once, with the baseline: memory, then speed."""
    what = f"training step at vocabulary {sizes.vocabulary}, eager"
    ask = partial(Question, case=name, what=what, theirs=PLAIN)
    memory = ask(quantity="peak bytes", goal=at_most(0.35))
    try:
        schedule.tell(f"{what}: counting memory")
        yield memory.counted(*(peak_bytes(make, sizes) for make in (ours, plain)))
    except NotCountable as error:
        yield memory.unanswered(error)
    timed = schedule.run(what, {OURS: ours(sizes), PLAIN: plain(sizes)})
    yield ask(quantity=_SPEED, goal=at_least(1.5)).rate(timed, sizes.tokens)


def peak_bytes(make: Callable[[Sizes], Step], sizes: Sizes) -> int:
    """Return the bytes at the worst moment of a step, parameters and averages included. Raises NotCountable."""
    with FakeTensorMode():
        step = make(sizes)
        step()  # the averages come with the first step
        groups = step.optimizer.param_groups
        held = [p for group in groups for p in group["params"]]
        held += [x for state in step.optimizer.state.values() for x in state.values() if hasattr(x, "untyped_storage")]
        return count_whole_peak_bytes(step, [*held, step.ids, step.labels])


def _peak_bytes_on_gpu(make: Callable[[Sizes], Step], sizes: Sizes) -> int:
    """Return the bytes that a GPU held at the worst moment of a step, beside what it held before."""
    before = torch.cuda.memory_allocated()
    step = make(sizes)
    step()
    torch.cuda.reset_peak_memory_stats()
    step()
    return torch.cuda.max_memory_allocated() - before


def _described(sizes: Sizes) -> str:
    return f"{sizes.layers} layers, width {sizes.width}, {sizes.batch} x {sizes.length} tokens"


# Decoding and prefill, on the weights of one model


def decoders(sizes: Sizes) -> dict[str, Callable[[], torch.Tensor]]:
    """Return greedy decoding of one prompt by a model of transformers and ours with its weights. Raises MissingError.

    Ours has a static cache, each token by one compiled graph, which a GPU replays as one CUDA graph, or operation by
    operation; theirs is as by default, and on a GPU also with the static cache with which it compiles itself.
    """
    peer = models.gpt2(sizes).eval().to(getattr(torch, sizes.dtype))
    prompt = torch.randint(sizes.vocabulary, (sizes.batch, _PROMPT))
    model = targets.from_transformers(peer)
    sides = {OURS: targets.compiled_decoder(model), EAGER: model}
    options = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": _NEW, "do_sample": False, "use_cache": True}
    theirs = {GENERATE: partial(peer.generate, prompt, **options)}
    if torch.get_default_device().type == "cuda":
        theirs[COMPILED_GENERATE] = partial(peer.generate, prompt, **options, cache_implementation="static")
    return {**{side: partial(targets.generate, one, prompt, _NEW) for side, one in sides.items()}, **theirs}


def _comparable(sizes: Sizes) -> Sizes:
    """Return sizes at which sides that compute the same write the same: in halves they part at the first near tie."""
    return sizes if sizes.dtype == "float32" else replace(sizes, layers=min(2, sizes.layers), dtype="float32")


def cached(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Compare ours with `generate` and itself uncompiled, if all write the same; and with the floor of memory.

    In halves, what they write is compared in float32, with two layers.
    """
    what = f"decoding with a cache, batch {sizes.batch}, vocabulary {sizes.vocabulary}"
    ask = partial(Question, case=name, what=what)
    against, compiled = (
        ask(theirs=side, quantity=_SPEED, goal=at_least(2.0)) for side in (GENERATE, COMPILED_GENERATE)
    )
    try:
        sides = decoders(sizes)
        schedule.tell(f"{what}: compiling")
        alike = _comparable(sizes)
        compared = sides if alike == sizes else decoders(alike)
        want = compared[GENERATE]()
        same = all(torch.equal(compared[side](), want) for side in (OURS, EAGER))
    except models.MissingError as error:
        yield against.unanswered(error)
        return
    except Exception as error:  # whatever a compiler raises on a machine where it finds no tools
        yield against.unanswered(f"{type(error).__name__}: {error}")
        return
    if not same:
        yield against.unanswered("the sides write different tokens from the same weights: nothing to compare")
        return
    if COMPILED_GENERATE in sides:
        try:
            compared[COMPILED_GENERATE]()
        except Exception as error:  # of their compilation, which says nothing of the other sides
            del sides[COMPILED_GENERATE]
            yield compiled.unanswered(f"{type(error).__name__}: {error}")
    times, conditions = timed = schedule.run(what, {**sides, FLOOR: reading(sizes.weight_bytes)})
    for question in (against, compiled, ask(theirs=EAGER, quantity=_SPEED)):
        if question.theirs in sides:
            yield question.rate(timed, sizes.batch * _NEW)
    each = {OURS: 1e3 * times.of(OURS) / _NEW, FLOOR: 1e3 * times.of(FLOOR)}
    yield ask(theirs=FLOOR, quantity="ms per token").timed(times.time(FLOOR, factor=_NEW), each, conditions)


def prefill(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Compare ours with the model of transformers, if both give the same next token; nothing is compiled."""
    what = f"prefill of {sizes.batch} x {sizes.length} tokens, eager"
    question = Question(case=name, what=what, theirs=models.GPT2, quantity=_SPEED)
    ids = torch.randint(sizes.vocabulary, (sizes.batch, sizes.length))

    @torch.no_grad()
    def read(side: object) -> torch.Tensor:
        return calls.logits(calls.cached(side, ids))[:, -1].argmax(-1)

    def both(sizes: Sizes) -> tuple[Any, Any]:
        peer = models.gpt2(sizes).eval().to(getattr(torch, sizes.dtype))
        return targets.from_transformers(peer).eval(), peer

    try:
        model, peer = both(sizes)
        alike = _comparable(sizes)
        first, second = map(read, (model, peer) if alike == sizes else both(alike))
    except models.MissingError as error:
        yield question.unanswered(error)
        return
    if not torch.equal(first, second):
        yield question.unanswered("the sides choose different tokens from the same weights: nothing to compare")
        return
    timed = schedule.run(what, {OURS: partial(read, model), models.GPT2: partial(read, peer)})
    yield question.rate(timed, sizes.tokens)


# Single operations


def rowwise(name: str, sizes: dict[str, int], schedule: Schedule) -> Iterator[Peer]:
    """Compare norms of N rows of width d, and the loss of N rows of d logits, with PyTorch's functions."""
    for operation in ("layer_norm", "rms_norm", "cross_entropy"):
        for backward in (False, True):
            workload = Workload(family(operation), backward)
            passes = "forward and backward" if backward else "forward"
            sides = {
                side: workload.build(targets.find(word), sizes) for side, word in ((OURS, "impl"), (TORCH, "torch"))
            }
            what = f"{operation} of {sizes['N']} rows of {sizes['d']}, {passes}"
            question = Question(case=name, what=what, theirs=TORCH, quantity="ms")
            yield question.duration(schedule.run(what, sides))


def adamw(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Compare our AdamW step with PyTorch's, each with parameters and gradients of its own."""
    what = f"AdamW step over {sizes.parameters} parameters"
    question = Question(case=name, what=what, theirs=FOREACH, quantity="ms", goal=at_most(1.0))
    first, second = (_parameters(sizes) for _ in range(2))
    steps = {OURS: targets.adamw(first).step, FOREACH: torch.optim.AdamW(second, lr=1e-3, foreach=True).step}
    yield question.duration(schedule.run(what, steps))


def _parameters(sizes: Sizes) -> list[Any]:
    params = list(PlainGPT(sizes).parameters())
    for p in params:
        p.grad = torch.randn_like(p)
    return params


def tiled(name: str, shape: Sequence[int], schedule: Schedule) -> Iterator[Peer]:
    """Compare attention in plain PyTorch with PyTorch's kernel, forward and backward, on q, k, v `[B, H, n, d]`."""
    kinds: tuple[tuple[str, Callable[..., Run], Goal], ...] = (
        ("forward", _forward, at_most(2.0)),
        ("backward", _backward, at_most(3.0)),
    )
    baselines = {OURS: targets.find("impl:tiled").backend[0], SDPA: scaled_dot_product_attention}
    for passes, ready, goal in kinds:
        for is_causal in (False, True):
            what = f"attention {passes}, {'causal' if is_causal else 'full'}, n = {shape[2]}"
            question = Question(case=name, what=what, theirs=SDPA, quantity="ms", goal=goal)
            sides = {side: ready(attention, shape, is_causal) for side, attention in baselines.items()}
            yield question.duration(schedule.run(what, sides))


def _forward(attention: Attention, shape: Sequence[int], is_causal: bool) -> Run:
    q, k, v = (torch.randn(*shape) for _ in range(3))

    @torch.no_grad()
    def run() -> object:
        return attention(q, k, v, is_causal=is_causal)

    return run


def _backward(attention: Attention, shape: Sequence[int], is_causal: bool) -> Run:
    q, k, v = (torch.randn(*shape, requires_grad=True) for _ in range(3))
    o, g = attention(q, k, v, is_causal=is_causal), torch.randn(*shape)
    return lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True)
