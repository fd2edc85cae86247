"""The process that runs what is timed: ``python -m veriformer.bench.timing.worker TARGET DEVICE CLOCK``.

It reads requests, one JSON object in a line, and answers each with one: ``prepare`` a workload, ``check`` its result,
run a ``turn`` of it, tell the ``device_state``, the ``ceiling`` of products, or how long a ``copy`` takes. What the
target prints goes to standard error.

Results are checked at small sizes by running error analysis; where that would take far longer than the call, changed
arguments must change the result."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from veriformer.bench.operations.family import Family
from veriformer.bench.targets import Target, find
from veriformer.bench.timing import conditions, workloads
from veriformer.bench.timing.conditions import Clock, clock
from veriformer.bench.timing.workloads import Prepared, Workload
from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Tensor

_FEW = {"B": 2, "G": 2, "R": 2, "H": 2, "N": 5, "n": 7, "n_q": 5, "n_k": 7, "d": 6, "f": 9, "V": 11}


def is_judged(family: Family) -> bool:
    """Return whether calls of the family are called with the tensors of a formula that has a gradient, and no more."""
    record = OPERATIONS.get(family.operation)
    if record is None or record.gradient is None or not set(family.letters.split()) <= set(_FEW):
        return False
    return all(isinstance(one, Tensor) for one in record.call.values() if one.required)


def wrong(workload: Workload, operations: Sequence[Any], device: str) -> str | None:
    """Return the error of a small call's result, or None where it is right, or where there is no formula for it."""
    if not is_judged(workload.family):
        return None
    record = OPERATIONS[workload.family.operation]
    options = workload.family.options
    made = workload.prepare(operations, _FEW, device)
    arguments = [x.detach().double().cpu().numpy() if x.is_floating_point() else x.cpu().numpy() for x in made.tensors]
    got = _floats(made())
    xp = RunningError(FORMATS["fp32"])
    raised = [xp.asarray(x) if x.dtype.kind == "f" else x for x in arguments]
    assert record.formula is not None
    assert record.gradient is not None
    exact = record.formula(xp, *raised, **options)
    if workload.backward:
        exact = record.gradient(xp, *raised, xp.asarray(np.ones(exact.shape)), **options)
    several = exact[: len(record.differentiable)] if isinstance(exact, tuple) else (exact,)
    all_exact = [x for x in several if x is not None]
    for x, wanted in zip(got, all_exact, strict=True):
        value, bound = xp.judgeable(wanted)
        error = np.abs(x.double().cpu().numpy() - value)
        ratio = float(np.max(error / np.where(bound > 0, bound, np.finfo(np.float32).tiny), initial=0))
        if not ratio <= 1:
            return f"the result is wrong: its error is {ratio:.3g} times what rounding explains"
    return None


def kept(made: Prepared) -> str | None:
    """Return the fault if the result ignores changed arguments; None where it follows them, or where there are none."""
    floating = [x for x in made.tensors if x.is_floating_point()]
    before = [x.detach().clone() for x in _floats(made())]
    if not floating or not before:
        return None
    values = [x.detach().clone() for x in floating]
    with torch.no_grad():
        for x in floating:
            x.copy_(torch.randn_like(x))
    after = [x.detach().clone() for x in _floats(made())]
    with torch.no_grad():
        for x, value in zip(floating, values, strict=True):
            x.copy_(value)
    if all(torch.equal(a, b) for a, b in zip(before, after, strict=True)):
        return "the result is cached: it stays the same where the arguments change"
    return None


def _floats(result: Any) -> list[torch.Tensor]:
    return [x for x in tree_leaves(result) if isinstance(x, torch.Tensor) and x.is_floating_point()]


Request = dict[str, Any]


class Worker:
    """Prepared workloads of one target."""

    def __init__(self, target: Target, device: str, measure: Clock) -> None:
        self.target, self.device, self.measure = target, device, measure
        self.runs: dict[str, workloads.Prepared] = {}

    def answer(self, request: Request) -> Request:
        """Answer a request, or return the error that it ended with."""
        try:
            action: Callable[[Request], Request] = getattr(self, request["do"])
            return action(request)
        except workloads.NotTimedError as error:
            return {"skipped": str(error)}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:500]}

    def prepare(self, request: Request) -> Request:
        """Build a workload and run it three times; the quickest of the last two tells how long a turn must be."""
        name = request["workload"]
        if "family" in request:
            run = workloads.scaled(request, self.target, self.device)
        else:
            run = workloads.build(name, self.target, self.device)
        self.measure(run, 1)
        self.runs[name] = run
        return {"seconds": min(self.measure(run, 1) for _ in range(2))}

    def turn(self, request: Request) -> Request:
        """Return the seconds of one run, over some repeats."""
        return {"seconds": self.measure(self.runs[request["workload"]], request["repeats"])}

    def check(self, request: Request) -> Request:
        """Check whether a prepared workload computes what it should: `wrong` says why not."""
        workload, made = workloads.find(request), self.runs[request["workload"]]
        said = kept(made)
        if said is None and workload is not None:
            said = wrong(workload, workload.operations(self.target), self.device)
        return {} if said is None else {"wrong": said}

    def ceiling(self, request: Request) -> Request:
        """Return the best FLOP/s of a matrix product measured here."""
        return {"flops": conditions.product_rate(self.device, self.measure)}

    def copy(self, request: Request) -> Request:
        """Return the seconds in which so many bytes are read and written, half of them each."""
        x = torch.zeros(max(1, request["bytes"] // 8), device=self.device)
        repeats = max(1, 2**22 // max(1, request["bytes"]))
        return {"seconds": min(self.measure(lambda: x + 1, repeats) for _ in range(7))}

    def device_state(self, request: Request) -> Request:
        """Return temperature, clocks and throttling reasons of the device."""
        return conditions.device_state(self.device)


def serve(requests: TextIO, answers: TextIO, worker: Worker) -> None:
    """Answer every request until there are no more."""
    for line in requests:
        answers.write(json.dumps(worker.answer(json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    """Load the target, say so, and serve."""
    target, device, measure = sys.argv[1:4]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the target prints is no answer
    torch.set_num_threads(1)
    try:
        worker = Worker(find(target), device, clock(measure))
    except Exception as error:
        answers.write(json.dumps({"error": str(error)[:500]}) + "\n")
        answers.flush()
        return
    answers.write(json.dumps({"ready": True, **conditions.versions()}) + "\n")
    answers.flush()
    serve(sys.stdin, answers, worker)


if __name__ == "__main__":
    main()
