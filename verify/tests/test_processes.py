"""Items done by processes of this machine: each that ends, hangs or raises costs itself, and nothing is begun twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from veriformer.workers import processes
from veriformer.workers.processes import Processes
from veriformer.workers.session import Item, Outcome, Session


class Work:
    """Does what an item says."""

    def __init__(self, payload: Mapping[str, str]) -> None:
        self.folder = Path(payload["folder"])
        self.done = 0

    def run(self, item: str, extra: Any) -> Any:
        """Return how many items this process has done, and what was said."""
        self.done += 1
        with (self.folder / item).open("a") as file:
            file.write("begun\n")
        match item.partition(" ")[0]:
            case "ends":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hangs":
                time.sleep(600)
            case "raises":
                raise ValueError("not today")
            case "leaves":
                if os.fork():  # a process of its own, which has all that this one had open, outlives it
                    os._exit(0)
                time.sleep(3)
                os._exit(0)
            case "rests":
                time.sleep(3)
        return {"done": self.done, "extra": extra, "cwd": os.getcwd(), "set": os.environ.get("VERIFORMER_TEST")}


def session(folder: Path) -> Session:
    return Session(work=f"{__name__}:Work", payload={"folder": str(folder)})


def outcomes(folder: Path, items: list[Item], jobs: int = 2) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    with Processes(session(folder), jobs) as side:
        side.run(items, lambda item, outcome: found.__setitem__(item.name, outcome), lambda item: len(found))
    return found


@pytest.mark.whole
def test_what_ends_its_process_or_hangs_costs_itself(tmp_path: Path) -> None:
    names = ["right 1", "ends", "right 2", "hangs", "raises", "leaves", "right 3"]
    found = outcomes(tmp_path, [Item(name=name, limit_s=2.0) for name in names])
    assert set(found) == set(names)
    assert {name for name, one in found.items() if one.lost is not None} == {"ends", "hangs", "leaves"}
    assert all((tmp_path / name).read_text() == "begun\n" for name in names)
    assert "ValueError: not today" in str(found["raises"].error)
    lost = {name: found[name].lost or 0.0 for name in ("hangs", "leaves")}
    assert lost["leaves"] < 2.0 <= lost["hangs"] < 60.0
    assert [found[f"right {n}"].value["done"] > 0 for n in (1, 2, 3)] == [True] * 3


def test_what_an_item_needs_is_told_before_it_begins(tmp_path: Path) -> None:
    items = [Item(name="b", needs=("a", "elsewhere")), Item(name="a"), Item(name="c", needs=("b",))]
    found = outcomes(tmp_path, items)
    assert [found[name].value["extra"] for name in "abc"] == [0, 1, 2]


def test_a_process_sees_folder_and_environment_as_they_are_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VERIFORMER_TEST", "yes")
    value = outcomes(tmp_path, [Item(name="a")])["a"].value
    assert (value["cwd"], value["set"]) == (str(tmp_path), "yes")


def test_a_process_that_ended_between_items_is_replaced(tmp_path: Path) -> None:
    told: list[Outcome] = []

    def tell(item: Item, outcome: Outcome) -> None:
        told.append(outcome)
        if item.name == "a":
            (one,) = side._idle
            one.process.kill()
            one.process.join()

    with Processes(session(tmp_path), 1) as side:
        side.run([Item(name="a"), Item(name="b", needs=("a",))], tell)
    assert [one.value["done"] for one in told] == [1, 1]


@pytest.mark.whole
@pytest.mark.parametrize(("waited", "lost"), [(0.0, True), (600.0, False)])
def test_time_without_a_processor_is_none_of_the_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: float, lost: bool
) -> None:
    readings = iter([0.0])
    monkeypatch.setattr(processes, "kept_waiting", lambda process: next(readings, waited))
    monkeypatch.setattr(processes, "_LOOK_S", 0.05)
    found = outcomes(tmp_path, [Item(name="rests", limit_s=0.5)], jobs=1)
    assert (found["rests"].lost is not None) is lost


def test_a_long_folder_for_temporary_files_has_no_room_for_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    code = (
        "import tempfile\nfrom multiprocessing import forkserver\nfrom veriformer.workers.processes import prepare\n"
        "prepare([])\nprint(len(forkserver._forkserver._forkserver_address), tempfile.gettempdir())"
    )
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    length, now = done.stdout.split()
    assert int(length) < 108
    assert now == str(folder)


def test_an_interruption_ends_the_processes_and_keeps_what_was_told(tmp_path: Path) -> None:
    told: list[str] = []

    def tell(item: Item, outcome: Outcome) -> None:
        told.append(item.name)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Processes(session(tmp_path), 2) as side:
        side.run([Item(name="a"), Item(name="hangs", limit_s=600.0)], tell)
    assert told == ["a"]
    assert all(not one.process.is_alive() for one in side._busy)
