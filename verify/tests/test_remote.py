"""A run on the workers of a scheduler gives what one process gives, findings too."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("distributed")


from tests.dask_processes import Processes, running
from tests.test_shards import TARGET, ran, timeless
from veriformer.verify.comparison.remote import compare_there
from veriformer.verify.engine import probing, remote
from veriformer.verify.engine.arguments import ExecutionError
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.remote import execution
from veriformer.verify.mutants.matrix import KillMatrix
from veriformer.verify.mutants.mutation_run import MATRIX_PROFILE, kill_matrix, run_member
from veriformer.verify.results import Results, Status
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.loading import load
from veriformer.workers.session import ClusterError

ENDS = """
import os
import torch

def silu(x):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x: expected a tensor, got {x!r}")
    if x.abs().max() >= 16:
        os._exit(3)
    return x * x.sigmoid()
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("dask"), workers=2) as processes:
        yield processes


def on_workers(plan: Plan, place: remote.Place, folder: Path) -> Results:
    described = place.look(plan, 20.0)
    plan = replace(plan, domains=described.domains)
    journal = Journal(folder / "remote")
    journal.begin(plan)
    told: list[str] = []
    found, stopped = remote.run(plan, described, journal, place, tell=lambda result: told.append(result.key))
    assert stopped is None
    assert sorted(told) == sorted(result.key for result in found.results)
    remote.add_findings(found, plan, place)
    return found


@pytest.mark.whole
def test_workers_give_what_one_process_gives(there: Processes, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from beside import rms_norm, softmax\n")
    (tmp_path / "beside.py").write_text(TARGET)
    plan = Plan(
        target=str(tmp_path / "mine.py"),
        only=("softmax.equation", "rms_norm.equation", "rms_norm.batch"),
        dtypes=("fp32",),
        timeout_s=600,  # no row ends because the machine has other things to do
    )
    found = on_workers(plan, remote.Place(there.address), tmp_path)
    plan = replace(plan, domains={name: domain.to_dict() for name, domain in found.domain.items()})
    here = ran(plan, tmp_path)
    remote.add_findings(here, plan, remote.Here(1))
    assert timeless(found) == timeless(here)
    statuses = {row.requirement: row.status for row in found.results}
    assert statuses["softmax.equation"] is Status.PASS
    assert statuses["rms_norm.equation"] is Status.FAIL  # every call is wrong
    assert statuses["rms_norm.batch"] is Status.BLOCKED


@pytest.mark.whole
def test_a_target_that_ends_its_process_costs_its_rows_and_a_run_goes_on_where_it_was(
    there: Processes, tmp_path: Path
) -> None:
    (tmp_path / "ends.py").write_text(ENDS)
    rows = ("silu.contract", "silu.refusal", "silu.limits")  # of which the last alone is about numbers so large
    plan = Plan(target=str(tmp_path / "ends.py"), only=rows, dtypes=("fp32",), timeout_s=600)
    described = probing.describe(load(plan.target), "cpu")
    first, *_ = plan.rows()
    journal = Journal(tmp_path / "journal")
    journal.begin(plan)
    journal.add(first.result(Status.PASS, message="kept"))
    found, stopped = remote.run(plan, described, journal, remote.Place(there.address), tell=lambda result: None)
    assert stopped is None
    assert [row.key for row in found.results] == [row.key for row in plan.rows()]
    assert found.results[0].message == "kept"
    statuses = {row.requirement: row.status for row in found.results}
    assert statuses == {"silu.contract": Status.PASS, "silu.refusal": Status.PASS, "silu.limits": Status.CRASH}


@pytest.mark.whole
def test_members_on_workers_give_the_same_matrix(there: Processes) -> None:
    names = ["mutant:TOK-01"]  # whose rows are done in no time, however slow the machine is
    told: list[str] = []
    found, interrupted = kill_matrix(
        names, jobs=1, seed="slug", tell=lambda n, c: told.append(n), say=lambda text: None, scheduler=there.address
    )
    here = KillMatrix(
        MATRIX_PROFILE, "slug", tuple(c for name in names for c in run_member(name, "slug", shrink=False))
    )
    timed = [replace(matrix, cells=tuple(replace(c, seconds=0.0) for c in matrix.cells)) for matrix in (found, here)]
    assert timed[0].to_dict() == timed[1].to_dict()
    assert told == names
    assert not interrupted


@pytest.mark.whole
def test_a_worker_compares_as_this_machine_does_and_its_scripts_name_the_files_that_lie_here(
    there: Processes, tmp_path: Path
) -> None:
    words = []
    for name, factor in (("a", 1.0), ("b", 1.5)):  # of the same name
        (tmp_path / name).mkdir()
        (tmp_path / name / "beside.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / name / "mine.py").write_text(
            "import torch\nfrom beside import FACTOR\n\ndef scaled(x):\n    return FACTOR * x\n"
            "def get_inputs():\n    return [torch.randn(4, 8)]\n"
        )
        words.append(f"{tmp_path / name / 'mine.py'}:scaled")
    found = compare_there(*words, inputs=None, device="cpu", seconds=5.0, scheduler=there.address)
    assert found.verdict == "violated"
    assert (found.reference, found.candidate) == tuple(words)
    example = found.grave[0].counterexample
    assert example is not None
    assert str(tmp_path / "b" / "mine.py") in example["script"]
    with pytest.raises(TargetError, match=r"nowhere\.py"):
        compare_there("nowhere.py", words[0], inputs=None, device="cpu", seconds=5.0, scheduler=there.address)


@pytest.mark.whole
def test_what_cannot_be_done_there_is_said(there: Processes, tmp_path: Path) -> None:
    place = remote.Place(there.address)
    with pytest.raises(TargetError, match=r"nowhere\.py.*no such file"):
        place.look(Plan(target="nowhere.py", only=("softmax",)), 5.0)  # (said by the worker)
    with pytest.raises(ClusterError, match="no worker offers a GPU; start one with --resources GPU=1"):
        place.look(Plan(target="torch", only=("softmax",), device="cuda"), 5.0)
    with (
        pytest.raises(ExecutionError, match="there is no such file"),
        execution("nowhere.json", jobs=1, device="cpu") as how,
    ):
        how.look(Plan(target="torch", only=("softmax",)), 5.0)


def test_demands_share_a_gpu_between_the_threads_beside_it_and_ask_for_memory_where_it_is_told() -> None:
    plan = Plan(target="torch", device="cuda")
    offers = [{"GPU": 1.0, "threads": 4.0}, {"GPU": 1.0, "threads": 8.0}, {"threads": 2.0}]
    assert remote.demand(plan, offers) == {"GPU": 0.125}
    assert remote.demand(replace(plan, device="cpu"), offers) == {}
    assert remote.demand(replace(plan, device="cpu"), [{"memory": 1e12, "threads": 1}]) == {"memory": 8.0 * 2**30}


@pytest.mark.whole
def test_the_journal_of_many_rows_takes_little_memory(tmp_path: Path) -> None:
    row = Plan(target="torch", only=("silu.contract",), dtypes=("fp32",)).rows()[0].result(Status.PASS, examples=12)
    journal = Journal(tmp_path / "many")
    journal.begin(Plan(target="torch"))
    tracemalloc.start()
    for number in range(2000):
        journal.add(replace(row, requirement=f"silu.r{number}"))
    assert len(journal.results()) == 2000
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / 2000 < 3000, f"{held / 2000:.0f} bytes a row"
