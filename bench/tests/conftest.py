"""Shared fixtures: attentions of known cost, and one record."""

from pathlib import Path

import pytest
import torch

from veriformer.bench.document import Claim, Count, Expression, Witness
from veriformer.bench.regression import measure as regression
from veriformer.bench.scaling import measure as scaling
from veriformer.bench.targets import find
from veriformer.bench.timing import conditions
from veriformer.bench.timing.arms import DiedError
from veriformer.bench.timing.worker import Worker
from veriformer.bench.verdicts import Verdict


@pytest.fixture
def attention():
    """Attention as printed."""
    return dense


@pytest.fixture
def blockwise():
    """Makes an attention in blocks of a size, which skips those that a causal mask hides. Only its cost is right."""
    return in_blocks


@pytest.fixture
def record():
    """A count that refutes."""
    return COUNT


class LocalProcess:
    """Answers as the process of an arm does, without one."""

    def __init__(self, side, device="cpu", clock="wall"):
        place = Path(side.folder or ".") / side.target
        self.worker = Worker(find(str(place) if place.exists() else side.target), device, conditions.clock(clock))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def ask(self, request, timeout=60.0):
        try:
            return self.worker.answer(request)
        except BaseException as error:  # a worker answers with every Exception
            raise DiedError("was ended by signal 9") from error


@pytest.fixture
def local_processes(monkeypatch):
    """Times are taken in this process, short ones."""
    for module in (regression, scaling):
        monkeypatch.setattr(module, "Process", LocalProcess)
    monkeypatch.setattr(regression, "_TURN", 1e-4)
    monkeypatch.setattr(scaling, "_TURN", 1e-4)
    monkeypatch.setattr(scaling, "_LONGEST", 1e-3)
    monkeypatch.setattr(scaling, "_MOST_BYTES", 2**20)


def dense(q, k, v, *, is_causal=False):
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    s = q @ k.mT / q.shape[-1] ** 0.5
    if is_causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return s.softmax(-1) @ v


def in_blocks(block):
    def attention(q, k, v, *, is_causal=False):
        k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
        rows = []
        for i, q_i in enumerate(q.split(block, dim=2)):
            seen = slice(0, (i + 1) * block) if is_causal else slice(None)
            rows.append((q_i @ k[:, :, seen].mT) @ v[:, :, seen])
        return torch.cat(rows, dim=2)

    return attention


COUNT = Count(
    target="mine",
    operation="attention",
    case="all lengths",
    passes="forward",
    quantity="FLOPs",
    grid={"n": {"nodes": [1, 2], "beyond": 3}},
    fixed={"G": 2, "n_q": "n"},
    points=3,
    measured=Expression(text="2*n", latex="2 n"),
    claim=Claim(kind="equal", text="3*n", latex="3 n"),
    verdict=Verdict.REFUTED,
    reason=None,
    witness=Witness(point={"n": 1}, counted=2, claimed=3),
    seconds=0.25,
)
