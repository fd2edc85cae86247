"""The process that runs what is timed: ``python -m veriformer.bench.timing.worker TARGET DEVICE CLOCK``.

It reads requests, one JSON object in a line, and answers each with one: ``prepare`` a workload, ``check`` its result,
run a ``turn`` of it, tell the ``device_state``, the ``ceiling`` of products, or how long a ``copy`` takes. What the
target prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

import torch

from veriformer.bench.targets import Target, find
from veriformer.bench.timing import conditions, results, workloads
from veriformer.bench.timing.clocks import Clock, clock

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
        """Seconds of one run, over some repeats."""
        return {"seconds": self.measure(self.runs[request["workload"]], request["repeats"])}

    def check(self, request: Request) -> Request:
        """Check whether a prepared workload computes what it should: `wrong` says why not."""
        workload, made = workloads.find(request), self.runs[request["workload"]]
        said = results.kept(made)
        if said is None and workload is not None:
            said = results.wrong(workload, workload.operations(self.target), self.device)
        return {} if said is None else {"wrong": said}

    def ceiling(self, request: Request) -> Request:
        """FLOP/s of the best matrix product that was measured here."""
        return {"flops": conditions.product_rate(self.device, self.measure)}

    def copy(self, request: Request) -> Request:
        """Seconds in which so many bytes are read and written, half of them each."""
        x = torch.zeros(max(1, request["bytes"] // 8), device=self.device)
        repeats = max(1, 2**22 // max(1, request["bytes"]))
        return {"seconds": min(self.measure(lambda: x + 1, repeats) for _ in range(7))}

    def device_state(self, request: Request) -> Request:
        """Temperature, clocks and reasons for throttling of the device."""
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
