"""Job of the candidate's process: every case in turn, and calls whose history or memory exposes cheating.

Attributes that a candidate replaces in its process are noted: functions that compare, measure time or compute.
"""

from __future__ import annotations

import builtins
import gc
import math
import random
import threading
import time
import timeit
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.testing
import torch.utils.benchmark
from torch.utils import _pytree as pytree

from veriformer.verify.comparison.calling import Called, call
from veriformer.verify.comparison.chance import moments
from veriformer.verify.comparison.drawing import Inputs
from veriformer.verify.comparison.subject import CANDIDATE, REFERENCE, Objects, Prepared, load_subject
from veriformer.verify.judging import global_state, isolation

_MANY, _MANY_S = 256, 3.0
_save, _now = torch.save, time.monotonic  # bound before any other code may replace them
MEMORY_GIB = 32.0

_HOLDERS: Mapping[str, Any] = {
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.Module": torch.nn.Module,
    "torch.autograd": torch.autograd,
    "torch.linalg": torch.linalg,
    "torch.testing": torch.testing,
    "torch.random": torch.random,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.cuda.Stream": torch.cuda.Stream,
    "torch.utils.benchmark": torch.utils.benchmark,
    "torch.utils.benchmark.Timer": torch.utils.benchmark.Timer,
    "time": time,
    "timeit": timeit,
    "math": math,
    "random": random,
    "gc": gc,
    "builtins": builtins,
    "threading": threading,
    "numpy": np,
    "numpy.testing": getattr(np, "testing"),  # noqa: B009  (watched, not used)
    "numpy.random": np.random,
}


class Process:
    """Process of the candidate: the calls it has made, and the records written of them."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.folder, self.out = Path(job["folder"]), Path(job["out"])
        self.device: str = job["device"]
        self.changes: dict[str, list[str]] = {}
        self.last: Called | None = None
        self.last_name = ""
        self.attributes = _watched_attributes()
        self.replaced: dict[str, list[str]] = {}

    def load(self) -> None:
        """Load the candidate, after the reference if the job demands it."""
        earlier = self.job.get("reference")
        self.earlier = None
        if earlier:
            self.earlier = Objects(load_subject(earlier, REFERENCE), self.folder, self.device)
        with self._watched("loading"):
            subject = load_subject(self.job["spec"], CANDIDATE)
        self.objects = Objects(subject, self.folder, self.device, fresh=self.job.get("stateful", False))

    def _watched(self, when: str) -> Any:
        def tell(what: str) -> None:
            if what not in self.changes.setdefault(when, []):
                self.changes[when].append(what)

        return global_state.guarded(global_state.OF_ROWS, tell)

    def make(self, name: str, prepared: Prepared, inputs: Inputs | None = None) -> None:
        """Call the candidate on a case and write what is seen; then look again at the results of the call before."""
        with (self.out / "begun").open("a", encoding="utf-8") as journal:
            journal.write(name + "\n")
        kept = self._reference_first(prepared)
        inputs = prepared.inputs if inputs is None else inputs
        with self._watched("a call"):
            try:
                made = self.objects.of(prepared)
                called = call(made, inputs, seed=prepared.case.seed, gradient=prepared.case.gradient)
            except BaseException as error:
                called = Called({"results": {}, "types": {}, "error": [type(error).__name__, str(error)[:2000]]})
        del kept
        called.finish()
        if self.last is not None:
            self.last.settle("overwritten")
            if "overwritten" in self.last.record:
                self._write(self.last_name, self.last)
        self._write(name, called)
        self.last, self.last_name = called, name
        for what in _replaced_attributes(self.attributes):
            self.replaced.setdefault(what, []).append(name)

    def _reference_first(self, prepared: Prepared) -> Any:
        if self.earlier is None:
            return None
        copies = pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, prepared.inputs)
        made = self.earlier.of(prepared)
        with torch.no_grad():
            result = made(*copies[0], **copies[1])
        return result if self.job.get("keep") else None

    def _write(self, name: str, called: Called) -> None:
        _save(called.record, self.out / f"{name}.pt")

    def found(self) -> dict[str, Any]:
        """Return the process's facts beside the calls."""
        objects = self.objects
        return {
            "changes": self.changes,
            "replaced": self.replaced,
            "note": objects.note,
            "pairs": objects.pairs,
            "loader": objects.subject.loader,
            "attribute": objects.subject.attribute,
            "built": objects.subject.built,
        }


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the candidate on every case of a job, and on its histories of calls, if any."""
    isolation.limit_memory(MEMORY_GIB)
    process = Process(job)
    process.load()
    for name in job.get("moments", []):
        _save(
            moments(process.objects, Prepared.load(process.folder, name, process.device)),
            process.out / f"{name}.moments.pt",
        )
    for what in _replaced_attributes(process.attributes):
        process.replaced[what] = ["loading"]
    if job.get("fill"):  # torch.empty gives NaN: what reads it without writing it first shows
        torch.use_deterministic_algorithms(True, warn_only=True)
    names = job["cases"]
    for name in names:
        if _now() > job["until"]:
            break
        process.make(name, Prepared.load(process.folder, name, process.device))
    if job.get("histories"):
        for _ in _histories(process, job):
            if _now() > job["until"]:
                break
    return process.found()


def _histories(process: Process, job: dict[str, Any]) -> Iterator[None]:
    """Run other contents in the same tensors, then other tensors in the same memory, then call after call."""
    first, second = (Prepared.load(process.folder, name, process.device) for name in job["histories"])
    process.make(f"{first.name}.again", first)
    yield
    if not _refill(first.inputs, second.inputs):
        return
    process.make(f"{second.name}.refilled", second, first.inputs)
    yield
    other = Prepared.load(process.folder, first.name, process.device)
    process.make(f"{first.name}.replaced", other, _in_the_same_place(first.inputs, other.inputs))
    yield
    if job.get("stateful"):
        return
    began, count = _now(), 1
    while count <= _MANY and _now() - began < _MANY_S:
        prepared = Prepared.load(process.folder, job["histories"][count % 2], process.device)
        if count & (count - 1) == 0:
            process.make(f"{prepared.name}.call {count}", prepared)
        else:
            with torch.random.fork_rng(devices=[]):
                call(process.objects.of(prepared), prepared.inputs, seed=0, gradient=False)
        count += 1
        yield


def _refill(mine: Inputs, others: Inputs) -> bool:
    """Write the contents of other arguments into these tensors; whether they fit."""
    a, b = pytree.tree_leaves(mine), pytree.tree_leaves(others)
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if isinstance(x, torch.Tensor)]
    if any(x.shape != y.shape or x.dtype != y.dtype for x, y in pairs):
        return False
    with torch.no_grad():
        for x, y in pairs:
            x.copy_(y)
    return True


def _in_the_same_place(mine: Inputs, others: Inputs) -> Inputs:
    """Return new tensor objects with the contents of others, in the memory of these."""
    a, form = pytree.tree_flatten(mine)
    made = []
    for x, y in zip(a, pytree.tree_leaves(others), strict=True):
        if isinstance(x, torch.Tensor):
            x.data.copy_(y)  # without a word to autograd's count of versions
            new = torch.empty(0, dtype=x.dtype, device=x.device)
            made.append(new.set_(x.untyped_storage(), x.storage_offset(), x.size(), x.stride()))
        else:
            made.append(y)
    found: Inputs = pytree.tree_unflatten(made, form)
    return found


def _watched_attributes() -> dict[str, Any]:
    """Return every callable attribute of the watched modules and classes, by its full name."""
    return dict(_attributes())


def _attributes() -> Iterator[tuple[str, Any]]:
    for holder, thing in _HOLDERS.items():
        for name, value in list(vars(thing).items()):
            if callable(value) or isinstance(value, staticmethod | classmethod | property):
                yield f"{holder}.{name}", value


def _replaced_attributes(before: Mapping[str, Any]) -> list[str]:
    """Return the names of attributes replaced or removed since; replacements by PyTorch itself are left out."""
    now = _watched_attributes()
    return sorted(n for n, x in before.items() if now.get(n) is not x and not _is_of_libraries(now.get(n)))


def _is_of_libraries(value: Any) -> bool:
    """Return whether PyTorch or NumPy has made it: both replace functions of their own while they trace or compile."""
    code = getattr(value, "__code__", None)
    if code is not None:
        return any(f"/{library}/" in code.co_filename for library in ("torch", "numpy"))
    return str(getattr(value, "__module__", "")).partition(".")[0] in ("torch", "numpy")
