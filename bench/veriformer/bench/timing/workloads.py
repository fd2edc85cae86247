"""Timed workloads: calls of operations at sizes where the work outweighs the launch, and whole models."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from veriformer.bench.models import calls
from veriformer.bench.operations.catalogue import FAMILIES
from veriformer.bench.operations.family import Call, Family
from veriformer.bench.targets import Target

SIZES = {
    "B": 2,
    "G": 2,
    "R": 2,
    "H": 4,
    "N": 1024,
    "n": 384,
    "n_q": 384,
    "n_k": 384,
    "d": 64,
    "f": 256,
    "o": 64,
    "V": 8192,
    "E": 8,
    "P": 1_000_000,
    "t": 255,
    "m": 1024,
    "W": 64,
    "s": 1,
}
"""Sizes of a regression: each call takes about a millisecond on one core."""

FORWARD, BOTH = "forward", "forward and backward"
TRAINING, DECODING = "causal_lm, training step", "causal_lm, decoding"
_PROMPT, _NEW = 16, 8
_BATCH, _LENGTH = 4, 48


class NotTimedError(Exception):
    """The target does not provide this workload; the message says why."""


@dataclass(frozen=True)
class Workload:
    """Workload: a family of calls at some sizes, in one pass or both."""

    family: Family
    backward: bool

    @property
    def name(self) -> str:
        """Operation, calls and passes."""
        return f"{self.family.operation}, {self.family.case}, {BOTH if self.backward else FORWARD}"

    def build(self, target: Target, sizes: Mapping[str, int], device: str = "cpu") -> Prepared:
        """Run the call once and return its result. Raises NotTimedError."""
        torch.manual_seed(0)
        return self.prepare(self.operations(target), sizes, device)

    def operations(self, target: Target) -> list[Any]:
        """Return the target's operations that the call needs. Raises NotTimedError where something is missing."""
        found = [target.operation(name) for name in (self.family.operation, *self.family.beside)]
        if any(operation is None for operation in found):
            raise NotTimedError("not provided")
        return found

    def prepare(self, operations: Sequence[Any], sizes: Mapping[str, int], device: str = "cpu") -> Prepared:
        """Return the call of some operations at some sizes, with numbers that are drawn anew."""
        with torch.device(device):
            call = self.family.call(*operations, {x: sizes[x] for x in self.family.letters.split()})
        run = _with_gradients(call) if self.backward else _without_gradients(call)
        return Prepared(run, call.tensors)


@dataclass(frozen=True)
class Prepared:
    """A call that can be made again and again. tensors: its arguments, in the order of the operation's."""

    run: Callable[[], Any]
    tensors: Sequence[torch.Tensor] = ()

    def __call__(self) -> Any:
        """Make it."""
        return self.run()


def _without_gradients(call: Call) -> Callable[[], Any]:
    def run() -> Any:
        with torch.no_grad():
            return call.run()

    return run


def _with_gradients(call: Call) -> Callable[[], Any]:
    leaves = [x.requires_grad_() for x in call.tensors if x.is_floating_point()]

    def run() -> Any:
        outputs = [x for x in tree_leaves(call.run()) if isinstance(x, torch.Tensor) and x.requires_grad]
        if not outputs:
            raise NotTimedError("no result has a gradient")
        return torch.autograd.grad(outputs, leaves, [torch.ones_like(x) for x in outputs], allow_unused=True)

    return run


def names(patterns: tuple[str, ...] = ()) -> list[str]:
    """Return every workload, or those that a pattern names: an operation, or a glob over names."""
    known = [workload.name for workload in _operations()] + [TRAINING, DECODING]
    if not patterns:
        return known
    return [name for name in known if any(_matches(name, pattern) for pattern in patterns)]


def build(name: str, target: Target, device: str = "cpu") -> Prepared:
    """Return the workload of that name at its own sizes. Raises NotTimedError."""
    if name in (TRAINING, DECODING):
        return Prepared((_training if name == TRAINING else _decoding)(target, device))
    found = find({"workload": name})
    assert found is not None
    return found.build(target, SIZES, device)


def scaled(request: Mapping[str, Any], target: Target, device: str = "cpu") -> Prepared:
    """Return a family of calls at the sizes that a request names. Raises NotTimedError."""
    found = find(request)
    assert found is not None
    return found.build(target, request["sizes"], device)


def family(operation: str, case: str = "all sizes") -> Family:
    """Return the calls of one kind of an operation."""
    return next(f for f in FAMILIES if (f.operation, f.case) == (operation, case))


def find(request: Mapping[str, Any]) -> Workload | None:
    """Return the calls that a request names; None for whole models."""
    if "family" in request:
        return Workload(family(*request["family"]), request["backward"])
    return next((workload for workload in _operations() if workload.name == request["workload"]), None)


def _matches(name: str, pattern: str) -> bool:
    return name.partition(",")[0] == pattern or fnmatch.fnmatch(name, pattern)


def _operations() -> Iterator[Workload]:
    for family in FAMILIES:
        if family.costs.moved is not None or family.costs.flops is not None:
            yield Workload(family, False)
            yield Workload(family, True)


def _model(target: Target, device: str) -> Any:
    made: Any = target.operation("causal_lm")
    if made is None:
        raise NotTimedError("not provided")
    return calls.build(made, device)


def _training(target: Target, device: str) -> Callable[[], Any]:
    """Return a run of forward, loss, backward and a step of AdamW, the target's own where it has one."""
    model = _model(target, device).train()
    ids = torch.randint(calls.vocabulary(model, device), (_BATCH, _LENGTH), device=device)
    make: Any = target.operation("adamw") or torch.optim.AdamW
    optimizer = make([p for p in model.parameters() if p.requires_grad], 1e-4)
    return calls.training_step(model, optimizer, ids)


def _decoding(target: Target, device: str) -> Callable[[], Any]:
    """Return a run of greedy decoding after a prompt, with the model's own cache."""
    model = _model(target, device)
    prompt = torch.randint(calls.vocabulary(model, device), (1, _PROMPT), device=device)

    @torch.no_grad()
    def run() -> Any:
        try:
            result, new = calls.cached(model, prompt), []
            for _ in range(_NEW):
                new.append(calls.logits(result)[:, -1:].argmax(-1))
                result = calls.cached(model, new[-1], result.past_key_values)
        except calls.NoCacheError as error:
            raise NotTimedError(str(error)) from error
        return torch.cat(new, 1)

    return run
