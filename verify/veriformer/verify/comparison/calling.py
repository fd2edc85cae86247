"""Single calls with all their observable effects: results, gradients, changed arguments, late writes."""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import dataclasses
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from veriformer.verify.comparison.drawing import WORKING, Inputs
from veriformer.verify.comparison.subject import seed_everything, state
from veriformer.verify.judging import global_state

_PLAIN = (torch.Tensor, nn.Parameter)
_PATIENCE_S = 2.0

# Bound before any other code is loaded, which may replace them.
_clone, _equal, _enumerate, _grad = torch.Tensor.clone, torch.equal, threading.enumerate, torch.autograd.grad
_threads_now, _use_threads = torch.get_num_threads, torch.set_num_threads
Record = dict[str, Any]
"""Record of one call: tensors and plain values only, so that it can be read without running anything."""


def flat(result: Any) -> dict[str, Any]:
    """Return every part of a result by its place: tensors, numbers and texts; for other objects their type's name."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type | Mapping):
        result = vars(result)
    parts, _ = pytree.tree_flatten_with_path(_plain(result))
    return {pytree.keystr(path): _part(leaf) for path, leaf in parts}


def _plain(result: Any) -> Any:
    """Convert named tuples to plain tuples."""
    if isinstance(result, list | tuple):
        return [_plain(part) for part in result]
    return result


def _part(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray | np.generic):
        return torch.from_numpy(np.array(leaf)) if np.asarray(leaf).dtype.kind in "biufc" else str(leaf)
    if isinstance(leaf, torch.Tensor) or leaf is None or isinstance(leaf, bool | int | float | str):
        return leaf
    return f"<{type(leaf).__name__}>"


def snapshot(x: torch.Tensor) -> torch.Tensor:
    """Copy a tensor's present values to a dense tensor on the CPU."""
    x = x.detach()
    x = x.to_dense() if x.layout != torch.strided else x
    return _clone(x).to("cpu")


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors hold the same bits, or NaN both."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = a.detach().to("cpu"), b.detach().to("cpu")
    return _equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def leaves_of(inputs: Inputs) -> dict[str, torch.Tensor]:
    """Return every tensor among the arguments by its place."""
    parts, _ = pytree.tree_flatten_with_path(inputs)
    return {_place(path): leaf for path, leaf in parts if isinstance(leaf, torch.Tensor)}


def _place(path: Any) -> str:
    """Return ``argument 0``, ``argument mask``, or a deeper place."""
    rest = pytree.keystr(path[2:])
    return f"argument {str(path[1]).strip('[].').strip(chr(39))}{rest}"


@dataclasses.dataclass
class Called:
    """A finished call and its results, still held. record: observations made directly after the call."""

    record: Record
    parts: dict[str, Any] = dataclasses.field(default_factory=dict)
    threads: list[threading.Thread] = dataclasses.field(default_factory=list)

    def settle(self, name: str) -> None:
        """Record which results have changed since the call returned; name: the event since then."""
        shared = [place for place, _ in self.record.get("aliases", [])]  # written by whoever writes the argument
        known = [*self.record.get("unfinished", []), *self.record["types"], *shared]
        seen = self.record["results"]
        changed = [place for place, x in self._tensors() if place not in known and not same(x, seen[place])]
        if changed:
            self.record[name] = changed

    def _tensors(self) -> list[tuple[str, torch.Tensor]]:
        return [(place, x) for place, x in self.parts.items() if isinstance(x, torch.Tensor)]

    def finish(self) -> None:
        """Wait for threads that the call has left behind, and for the device; then look at the results again."""
        for thread in self.threads:
            thread.join(_PATIENCE_S)
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        self.settle("unfinished")


def call(made: Callable[..., Any], inputs: Inputs, *, seed: int, gradient: bool, like: Record | None = None) -> Called:
    """Call it once. Whatever it raises is part of the record, exits and interruptions too.

    like: a record of the same call, where nothing is wanted but what that has: the quantities, and nothing around them.
    """
    before = leaves_of(inputs)
    kept = {place: snapshot(x) for place, x in before.items()} if like is None else {}
    held = {name: snapshot(x) for name, x in state(made).items()} if like is None else {}
    if gradient:
        for x in before.values():
            if x.is_floating_point() and x.is_leaf:
                x.requires_grad_(True)
    running = set(_enumerate())
    seed_everything(seed)
    called = Called({"results": {}, "types": {}, "error": None, "touched": []})
    watched = global_state.OF_CALLS if like is None else ()
    try:
        with warnings.catch_warnings(), torch.set_grad_enabled(gradient), _threads(before.values()):
            warnings.simplefilter("ignore")
            with global_state.guarded(watched, called.record["touched"].append):
                result = made(*inputs[0], **inputs[1])
            called.threads = [thread for thread in _enumerate() if thread not in running and thread.is_alive()]
            _see(called, result)
            if gradient:
                _differentiate(called, made, before, seed)
    except BaseException as error:
        called.record["error"] = [type(error).__name__, str(error)[:2000]]
        return called
    record, now = called.record, state(made)
    if like is not None:
        record["changed"] = {place: snapshot(before[place]) for place in like["changed"]}
        record["state"] = {name: snapshot(now[name]) for name in like["state"]}
        return called
    record["changed"] = {place: snapshot(x) for place, x in before.items() if not same(x, kept[place])}
    record["state"] = {n: snapshot(x) for n, x in now.items() if n not in held or not same(x, held[n])}
    record["held"] = list(now)
    record["aliases"] = [
        [place, given] for place, x in called._tensors() for given, y in before.items() if x.numel() and _shared(x, y)
    ]
    return called


@contextlib.contextmanager
def _threads(given: Iterable[torch.Tensor]) -> Iterator[None]:
    """Compute small calls on one thread while entered: several threads wait for each other on a busy machine."""
    usual = _threads_now()
    if sum(x.numel() for x in given) <= WORKING:
        _use_threads(1)
    try:
        yield
    finally:
        _use_threads(usual)


def _see(called: Called, result: Any) -> None:
    called.parts = flat(result)
    for place, part in called.parts.items():
        tensor = isinstance(part, torch.Tensor)
        if tensor and type(part) not in _PLAIN:
            called.record["types"][place] = type(part).__name__
        called.record["results"][place] = snapshot(part) if tensor else part


def _shared(x: torch.Tensor, y: torch.Tensor) -> bool:
    if torch.strided not in (x.layout, y.layout) or x.layout != y.layout:
        return False
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def _differentiate(called: Called, made: Any, leaves: Mapping[str, torch.Tensor], seed: int) -> None:
    outputs = {place: x for place, x in called.parts.items() if isinstance(x, torch.Tensor) and x.requires_grad}
    called.record["differentiable"] = sorted(outputs)
    parameters = dict(made.named_parameters()) if isinstance(made, nn.Module) else {}
    wanted = {place: x for place, x in leaves.items() if x.is_leaf and x.requires_grad}
    wanted |= {f"parameter {name}": x for name, x in parameters.items() if x.requires_grad}
    called.record["gradients"] = {}
    if not outputs or not wanted:
        return
    weights = [_cotangent(x, seed, place) for place, x in outputs.items()]
    found = _grad(list(outputs.values()), list(wanted.values()), weights, allow_unused=True, materialize_grads=True)
    called.record["gradients"] = {place: snapshot(g) for place, g in zip(wanted, found, strict=True)}


def _cotangent(x: torch.Tensor, seed: int, place: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + 104_729 * (1 + len(place)))
    kind = torch.complex128 if x.is_complex() else torch.float64
    return torch.randn(x.shape, generator=generator, dtype=kind).to(x.device, x.dtype)
