"""Items on a real scheduler and worker processes: whatever is lost on the way, each has its outcome, and its own."""

from __future__ import annotations

import os
import re
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")

from distributed import Client

from tests.dask_processes import ROOTS, Processes, running, wait_for
from veriformer.workers.address import NoSchedulerError
from veriformer.workers.controller import Controller
from veriformer.workers.place import connect
from veriformer.workers.session import ClusterError, Item, LostError, Outcome, Session
from veriformer.workers.versions import versions

WORK = """
import os, signal, time
from pathlib import Path

class Work:
    def __init__(self, payload):
        self.payload = payload

    def run(self, item, extra):
        kind, _, number = item.partition("-")
        if kind == "ends":
            os._exit(7)
        if kind == "hangs":
            time.sleep(1e6)
        if kind == "raises":
            raise ValueError(item)
        if kind == "kills":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(5)
        if kind == "slow":
            time.sleep(0.05)
        if kind == "reads":
            import beside
            return [beside.ANSWER, Path("data/text").read_text(), os.environ["OMP_NUM_THREADS"]]
        return [self.payload, item, extra]
"""


def session(**fields: Any) -> Session:
    given = {"work": "work:Work", "payload": "p", "files": {"work.py": WORK.encode()}, "versions": versions()}
    return Session(**{**given, **fields})


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("dask")) as processes:
        connect(processes.address).close()
        yield processes


def done(place: str, items: list[Item], **fields: Any) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}

    def tell(item: Item, outcome: Outcome) -> None:
        assert item.name not in found, "an item has one outcome"
        found[item.name] = outcome

    with Controller(place, session(**fields)) as side:
        side.run(items, tell, lambda item: sorted(set(item.needs) & set(found)))
    return found


@pytest.mark.whole
def test_every_item_has_its_own_outcome(there: Processes) -> None:
    names = [f"{kind}-{n}" for n in range(4) for kind in ("fine", "raises", "fine2", "ends", "fine3")]
    found = done(there.address, [*(Item(name=name) for name in names), Item(name="hangs-1", limit_s=1.0)])
    assert set(found) == {*names, "hangs-1"}
    for name, outcome in found.items():
        kind = name.partition("-")[0]
        assert (outcome.lost is not None) == (kind in ("ends", "hangs")), outcome
        assert ("ValueError" in (outcome.error or "")) == (kind == "raises"), outcome
        if kind.startswith("fine"):
            assert outcome.value == ["p", name, []]
    assert (found["hangs-1"].lost or 0) >= 1.0
    with connect(there.address) as client:
        left = client.run(lambda: len(__import__("psutil").Process().children()))
    assert not any(left.values()), "the processes of a session end with it, one that hangs too"


def test_what_an_item_needs_is_told_before_it_is_sent(there: Processes) -> None:
    chain = [Item(name=f"fine-{n}", needs=tuple(f"fine-{k}" for k in range(n))) for n in range(6)]
    found = done(str(there.scheduler_file), [*reversed(chain), Item(name="last", needs=("elsewhere",))])
    for n in range(6):
        assert found[f"fine-{n}"].value[2] == [f"fine-{k}" for k in range(n)]
    assert found["last"].value == ["p", "last", []]


def test_files_reach_the_folder_that_items_run_in(there: Processes) -> None:
    files = {"work.py": WORK.encode(), "beside.py": b"ANSWER = 42", "data/text": b"words"}
    found = done(there.address, [Item(name="reads")], files=files, threads=3)
    assert found["reads"].value == [42, "words", "3"]


@pytest.mark.whole
def test_an_item_that_ends_its_worker_costs_itself_and_no_other(there: Processes) -> None:
    names = [*(f"slow-{n}" for n in range(30)), "kills-1", *(f"slow-{n}" for n in range(30, 60))]
    found = done(there.address, [Item(name=name) for name in names])
    assert {name for name, outcome in found.items() if outcome.value is None} == {"kills-1"}
    assert found["kills-1"].lost is not None


@pytest.mark.whole
def test_a_worker_killed_from_outside_costs_nothing(there: Processes) -> None:
    items = [Item(name=f"slow-{n}") for n in range(120)]

    found: dict[str, Outcome] = {}

    def kill() -> None:
        wait_for(lambda: len(found) > 10)
        with connect(there.address) as client:
            pids = client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)

    with Controller(there.address, session()) as side:
        thread = threading.Thread(target=kill)
        thread.start()
        side.run(items, lambda item, outcome: found.__setitem__(item.name, outcome))
        thread.join()
    assert len(found) == 120
    assert all(outcome.value == ["p", name, None] for name, outcome in found.items())


def test_another_version_is_refused_and_both_are_named(there: Processes) -> None:
    wanted = {**versions(), "torch": "1.2.3"}
    named = re.escape(f"has torch {versions()['torch']}, not 1.2.3")
    with pytest.raises(ClusterError, match=rf"tcp://\S+ {named}"), Controller(there.address, session(versions=wanted)):
        pass
    absent = session(versions={"nowhere": "1"})
    with pytest.raises(ClusterError, match="nowhere absent, not 1"), Controller(there.address, absent):
        pass


def test_where_nothing_answers_that_is_said() -> None:
    with pytest.raises(NoSchedulerError, match="there is no such file"):
        connect("nowhere.json")
    with pytest.raises(NoSchedulerError, match="nothing answers there within 1 s"):
        connect("tcp://127.0.0.1:9", seconds=1)


@pytest.mark.whole
def test_a_scheduler_that_is_stopped_and_started_again_loses_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    found: dict[str, Outcome] = {}
    with running(tmp_path, workers=0) as there:
        scheduler, workers = there.started[0], there.workers(2)

        def restart() -> None:
            wait_for(lambda: len(found) > 20)
            there.kill(scheduler)
            there.kill(workers)
            there.scheduler()
            there.workers(2)

        with Controller(there.address, session(), say=said.append) as side:
            thread = threading.Thread(target=restart)
            thread.start()
            side.run([Item(name=f"slow-{n}") for n in range(150)], lambda i, o: found.__setitem__(i.name, o))
            thread.join()
    assert len(found) == 150
    assert all(outcome.value == ["p", name, None] for name, outcome in found.items())
    assert said[-1] == "the scheduler is there again"


@pytest.mark.whole
def test_a_scheduler_that_stays_away_ends_the_run_with_what_was_finished(tmp_path: Path) -> None:
    found: dict[str, Outcome] = {}
    with running(tmp_path, workers=1) as there, Controller(there.address, session(), patience_s=60) as side:
        side.patience_s = 2

        def end() -> None:
            wait_for(lambda: len(found) > 10)
            there.end()

        threading.Thread(target=end).start()
        with pytest.raises(LostError, match="it was waited for 2 s"):
            side.run([Item(name=f"slow-{n}") for n in range(500)], lambda i, o: found.__setitem__(i.name, o))
    assert 0 < len(found) < 500


@pytest.mark.whole
def test_workers_that_stay_away_end_the_run_too(tmp_path: Path) -> None:
    found: dict[str, Outcome] = {}
    with running(tmp_path, workers=0) as there:
        workers = there.workers(1)
        with Controller(there.address, session()) as side:
            side.patience_s = 2

            def end() -> None:
                wait_for(lambda: len(found) > 10)
                there.kill(workers)

            threading.Thread(target=end).start()
            with pytest.raises(LostError, match="has had no worker for 2 s"):
                side.run([Item(name=f"slow-{n}") for n in range(500)], lambda i, o: found.__setitem__(i.name, o))
    assert 0 < len(found) < 500


@pytest.mark.whole
def test_a_worker_that_comes_later_takes_part_unless_its_versions_are_others(tmp_path: Path) -> None:
    (tmp_path / "other" / "torch-0.0.1.dist-info").mkdir(parents=True)
    (tmp_path / "other" / "torch-0.0.1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 0.0.1\n")
    said: list[str] = []
    found: dict[str, Outcome] = {}
    with running(tmp_path, workers=1) as there, Controller(there.address, session(), say=said.append) as side:
        there.workers(1)
        there.workers(1, PYTHONPATH=os.pathsep.join([str(tmp_path / "other"), *ROOTS]))
        with Client(there.address, set_as_default=False) as client:
            client.wait_for_workers(3, timeout=180)
        side.run([Item(name=f"slow-{n}") for n in range(200)], lambda i, o: found.__setitem__(i.name, o))
    assert all(outcome.value is not None for outcome in found.values())
    assert len({outcome.worker for outcome in found.values()}) == 2
    assert [text for text in said if "has torch 0.0.1, not" in text], said


@pytest.mark.whole
def test_a_worker_that_comes_back_elsewhere_goes_on_beside_one_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torch-0.0.1.dist-info").mkdir()
    (tmp_path / "torch-0.0.1.dist-info" / "METADATA").write_text("Name: torch\nVersion: 0.0.1\n")
    with running(tmp_path, workers=1) as there:
        there.workers(1, PYTHONPATH=os.pathsep.join([str(tmp_path), *ROOTS]))
        with connect(there.address) as client:
            client.wait_for_workers(2, timeout=180)
        found = done(
            there.address, [Item(name=name) for name in ("fine-1", "kills-1", *(f"slow-{n}" for n in range(9)))]
        )
    assert {name for name, outcome in found.items() if outcome.value is None} == {"kills-1"}


@pytest.mark.whole
def test_items_of_no_cost_take_little_memory(there: Processes) -> None:
    items = [Item(name=f"fine-{n}") for n in range(2000)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = done(there.address, items)
    assert len(found) == 2000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
