"""Not collected of itself (``nox -s engine``): whole runs on four workers through every mishap, and what they cost.

Each prints a line: what happened, what was compared, what came of it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.dask_processes import ROOTS, Processes, running, wait_for
from tests.test_shards import timeless
from veriformer.verify import results
from veriformer.verify.engine import probing, remote
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.targets.loading import load
from veriformer.workers.place import connect
from veriformer.workers.session import Session

LAWS = {
    "softmax": ("equation", "gradient", "purity", "layout", "refusal", "batch", "simplex", "shift", "permutation"),
    "rms_norm": ("equation", "gradient", "purity", "layout", "refusal", "batch", "unit", "scale", "odd", "near_eps"),
    "silu": ("equation", "gradient", "purity", "layout", "refusal", "symmetry", "limits"),
}
ROWS = tuple(f"{operation}.{law}" for operation, laws in LAWS.items() for law in laws)
# No row ends because the machine has other things to do: that would be a difference.
ASKED = ["--profile", "quick", "--timeout", 900, "--only", *ROWS, "--dtype", "fp32", "fp64"]
WRONG = """
import time
import torch

def softmax(z, dim=-1):
    time.sleep(0.002)
    return torch.softmax(z, dim)

def rms_norm(x, weight=None, *, eps=1e-6):
    y = x / (x.pow(2).mean(-1, keepdim=True).sqrt() + eps)
    return y if weight is None else y * weight

def silu(x):
    time.sleep(0.002)
    return x * x.sigmoid()
"""
Line = Callable[[str, str, str], None]
COSTS_NOTHING = """
class Rows:
    def __init__(self, payload):
        self.row = payload["row"]

    def run(self, item, extra):
        return {"result": {**self.row, "device": item.rpartition("-")[2].rstrip("]")}, "changes": {}}
"""


def veriformer(command: str, *words: object, timeout: float = 900) -> subprocess.CompletedProcess[str]:
    code = "from veriformer.verify.cli import verify; verify()"
    path = os.pathsep.join([*ROOTS, os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def judged(file: Path) -> dict[str, Any]:
    return timeless(results.read(file))


def rows(document: dict[str, Any]) -> str:
    return f"{len(document['results'])} rows and {len(document['findings'])} findings"


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str]) -> Callable[[str, str, str], None]:
    """Prints a line of the table."""

    def tell(happened: str, compared: str, came: str) -> None:
        with capsys.disabled():
            print(f"\n{happened:<44} | {compared:<62} | {came}", flush=True)

    return tell


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("single")
    (folder / "wrong.py").write_text(WRONG)
    done = veriformer("verify", folder / "wrong.py", *ASKED, "--jobs", 2, "--json", folder / "single.json")
    assert done.returncode == 1, done.stderr
    return folder / "wrong.py", judged(folder / "single.json")


def nothing(there: Processes) -> None:
    """no mishap"""


def kill_one_worker(there: Processes) -> None:
    """one worker killed by SIGKILL in the middle"""
    with connect(there.address) as client:
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def restart_everything(there: Processes) -> None:
    """scheduler and workers killed and started again"""
    for process in there.started:
        there.kill(process)
    there.scheduler()
    there.workers(4)


@pytest.mark.parametrize("mishap", [nothing, kill_one_worker, restart_everything])
def test_four_workers_equal_the_single_run(
    single: tuple[Path, dict[str, Any]], mishap: Callable[[Processes], None], tmp_path: Path, line: Line
) -> None:
    target, whole = single
    file, journal = tmp_path / "there.json", tmp_path / "there.json.partial"
    finished: list[int] = []
    with running(tmp_path) as there:

        def strike() -> None:
            wait_for(lambda: journal.is_file() and written(journal) >= 5, 600)
            finished.append(written(journal))
            mishap(there)

        thread = threading.Thread(target=strike)
        thread.start()
        done = veriformer("verify", target, *ASKED, "--scheduler", there.address, "--json", file)
        thread.join()
    assert done.returncode == 1, done.stderr
    assert judged(file) == whole
    assert finished[0] < len(whole["results"]), "it came when all was over"
    after = f" after {finished[0]} rows" if mishap is not nothing else ""
    line(f"verify on 4 workers: {mishap.__doc__}{after}", f"results.json of one run: {rows(whole)}", "equal")


def written(journal: Path) -> int:
    return journal.read_text().count('"requirement"')


def test_a_target_that_kills_its_worker_in_every_tenth_row(tmp_path: Path, line: Line) -> None:
    plan = Plan(target=str(tmp_path / "kills.py"), only=ROWS, dtypes=("fp32", "fp64"), timeout_s=900)
    fatal = [row.key for row in plan.rows()][4::10]
    (tmp_path / "kills.py").write_text(
        f"{WRONG}\nimport os, signal, sys\nright = softmax, rms_norm, silu\nFATAL = {fatal}\n"
        "def fatal():\n"
        "    frame = sys._getframe()\n"
        "    while frame := frame.f_back:\n"
        "        row = getattr(frame.f_locals.get('self'), 'row', None)\n"
        "        if row is not None and row.key in FATAL:\n"
        "            os.kill(os.getppid(), signal.SIGKILL)\n"
        "            os._exit(1)\n"
        "def softmax(z, dim=-1):\n    fatal()\n    return right[0](z, dim)\n"
        "def rms_norm(x, weight=None, *, eps=1e-6):\n    fatal()\n    return right[1](x, weight, eps=eps)\n"
        "def silu(x):\n    fatal()\n    return right[2](x)\n"
    )
    (tmp_path / "right.py").write_text(WRONG)
    described = probing.describe(load(str(tmp_path / "right.py")), "cpu")
    found = {}
    with running(tmp_path) as there:
        for name in ("kills", "right"):
            mine = replace(plan, target=str(tmp_path / f"{name}.py"))
            journal = Journal(tmp_path / name)
            journal.begin(mine)
            place = remote.Place(there.address)
            found[name], stopped = remote.run(mine, described, journal, place, tell=lambda result: None)
            assert stopped is None
    ended = {row.key for row in found["kills"].results if row.status is results.Status.CRASH}
    assert ended == set(fatal)
    assert len(fatal) >= 5
    blocked = {
        row.key
        for row in found["kills"].results
        if row.blocked_by and f"{row.blocked_by}[{row.dtype}-{row.device}]" in fatal
    }
    right = {row.key: row.status for row in found["right"].results}
    others = [row for row in found["kills"].results if row.key not in {*fatal, *blocked}]
    assert all(row.status is right[row.key] for row in others)
    line(
        f"a target that kills its worker in {len(fatal)} of {len(right)} rows",
        f"status of the {len(others)} others, and of those that rest on them",
        f"{len(fatal)} crash, {len(blocked)} blocked, others equal",
    )


# What it costs


@dataclass(frozen=True, kw_only=True)
class ManyRows(Plan):
    """A plan of as many rows as are wanted, told apart by their devices."""

    count: int = 0

    def every_row(self) -> list[CheckRun]:
        check = Plan(target="torch", only=("silu.equation",)).every_row()[0].check
        return [CheckRun(check, "fp32", f"cpu{number}") for number in range(self.count)]


class OfNoCost(remote.Place):
    """Rows that are finished when they begin."""

    def session(self, plan: Plan, work: str, **fields: Any) -> Session:
        row = plan.rows()[0].result(results.Status.PASS, examples=12, worst_ratio=0.25, vacuous_share=0.0)
        payload = {"row": results.json_safe(row.to_dict())}
        return Session(work="quick:Rows", payload=payload, files={"quick.py": COSTS_NOTHING.encode()})


@pytest.mark.parametrize(("count", "seconds"), [(10_000, 60), (100_000, 900)])
def test_rows_of_no_cost(count: int, seconds: float, tmp_path: Path, line: Line) -> None:
    plan = ManyRows(target="torch", count=count)
    described = probing.describe(load("torch"), "cpu")
    journal = Journal(tmp_path / "journal")
    journal.begin(plan)
    with running(tmp_path, workers=2) as there:
        began = time.monotonic()
        found, _ = remote.run(plan, described, journal, OfNoCost(there.address), tell=lambda result: None)
        took = time.monotonic() - began
    assert len(found.results) == count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    limits = f"under {seconds:g} s and 500 MB"
    line(f"{count} rows of no cost, 2 workers", limits, f"{took:.1f} s, {memory:.0f} MiB at most in the controller")
    assert took < seconds
    assert memory < 500e6 / 2**20


def test_two_dask_workers_keep_up_with_two_processes(tmp_path: Path, line: Line) -> None:
    plan = Plan(target="impl", only=ROWS, dtypes=("fp32", "fp64"), timeout_s=900)
    plan = replace(plan, domains=probing.domains(load("impl"), plan.operations(), "cpu", plan.dtypes))
    described = probing.describe(load("impl"), "cpu")
    took: dict[str, list[float]] = {"here": [], "dask": []}
    with running(tmp_path, workers=2) as there:
        for turn in range(3):
            for side in ("here", "dask"):
                journal = Journal(tmp_path / f"{side}{turn}")
                journal.begin(plan)
                began = time.monotonic()
                place = remote.Place(there.address) if side == "dask" else remote.Here(2)
                remote.run(plan, described, journal, place, tell=lambda result: None)
                took[side].append(time.monotonic() - began)
    rates = {side: len(plan.rows()) / sorted(times)[1] for side, times in took.items()}
    told = ", ".join(f"{side} {rate:.1f} rows/s" for side, rate in rates.items())
    line(f"{len(plan.rows())} rows, three times in turn, 2 processes", "at least 0.85 × those of this machine", told)
    assert rates["dask"] >= 0.85 * rates["here"]
