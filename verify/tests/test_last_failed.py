"""A run ends after so many rows that failed, and the rows that failed last time can be run alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from tests.made_results import results, row
from veriformer.verify import cli
from veriformer.verify.commands.request import Request
from veriformer.verify.commands.verification import Limit
from veriformer.verify.engine import last_failed
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.run import run_here
from veriformer.verify.results import VIOLATIONS, Result, Status
from veriformer.verify.targets.loading import wrap


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VERIFORMER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_rows_that_failed_are_remembered_until_they_run_again() -> None:
    first = results(
        [row("softmax.equation", Status.FAIL), row("silu.equation", Status.CRASH), row("silu.x", Status.PASS)]
    )
    last_failed.remember("mine.py", first)
    assert last_failed.known("mine.py") == [("softmax.equation", "fp32"), ("silu.equation", "fp32")]
    last_failed.remember("mine.py", results([row("silu.equation", Status.PASS), row("gelu.equation", Status.TIMEOUT)]))
    assert last_failed.known("mine.py") == [("softmax.equation", "fp32"), ("gelu.equation", "fp32")]
    assert last_failed.known("other.py") == []


def test_known_failures_and_advice_are_none_that_failed() -> None:
    last_failed.remember("mine.py", results([row("a.b", Status.KNOWN_FAIL), row("a.c", Status.ADVICE)]))
    assert last_failed.known("mine.py") == []


def test_an_earlier_results_file_is_asked_where_nothing_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = results([row("softmax.equation", Status.FAIL)])
    monkeypatch.setattr(last_failed, "read", lambda file: earlier)
    assert last_failed.known("mine.py", tmp_path / "results.json") == [("softmax.equation", "fp32")]
    assert last_failed.known("other.py", tmp_path / "results.json") == []


def test_a_file_that_is_broken_is_nothing_known(cache: Path) -> None:
    cache.mkdir()
    (cache / "last_failed.json").write_text("{")
    assert last_failed.known("mine.py") == []


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    class Said(Exception):
        pass

    def check(request: Request) -> None:
        raise Said(request)

    def ask(*words: str) -> Request:
        with pytest.raises(Said) as said:
            cli.verify.main(["mine.py", *words], standalone_mode=False)
        return said.value.args[0]  # type: ignore[no-any-return]

    monkeypatch.setattr(Request, "check", check)
    return ask


def test_the_rows_that_failed_are_selected_and_no_others(asked: Any) -> None:
    last_failed.remember("mine.py", results([row("softmax.equation", Status.FAIL), row("silu.equation", Status.FAIL)]))
    request = asked("--lf")
    assert (request.only, request.dtype) == (("softmax.equation", "silu.equation"), ("fp32",))
    assert asked("--last-failed", "--only", "silu").only == ("silu.equation",)
    assert asked("--lf", "--dtype", "fp64").only == ()
    assert asked().only == ()


def test_where_none_failed_all_are_run(asked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("--lf", "--only", "silu").only == ("silu",)
    assert "no row failed last time" in capsys.readouterr().err


def test_how_many_may_fail(asked: Any) -> None:
    assert [asked(*words).most for words in ((), ("-x",), ("--maxfail", "3"), ("--exitfirst",))] == [0, 1, 3, 1]


def test_parts_of_a_run_have_one_plan() -> None:
    done = CliRunner().invoke(cli.verify, ["impl", "--lf", "--shard", "1/2", "--json", "out/part.json"])
    assert done.exit_code == 2
    assert "--lf" in done.output


def test_a_limit_interrupts_once_so_many_rows_failed() -> None:
    told: list[Result] = []
    limit = Limit(2, told.append)
    for status in (Status.FAIL, Status.PASS, Status.KNOWN_FAIL):
        limit.tell(row("a.b", status))
    with pytest.raises(KeyboardInterrupt):
        limit.tell(row("a.c", Status.HARNESS_ERROR))
    assert limit.reason == "stopped after 2 rows that failed"
    assert len(told) == 4
    never = Limit(0, told.append)
    for _ in range(9):
        never.tell(row("a.b", Status.FAIL))
    assert never.reason is None


def test_a_run_ends_at_its_limit_and_begins_nothing_more(tmp_path: Path) -> None:
    target = wrap(SimpleNamespace(softmax=lambda z, dim=-1: torch.softmax(z, dim) * 1.01))
    plan = replace(Plan(target=target.spec, only=("softmax",), dtypes=("fp32",)), timeout_s=60)
    journal = Journal(tmp_path / "journal")
    journal.begin(plan)
    limit = Limit(1, lambda result: None)
    with pytest.raises(KeyboardInterrupt):
        run_here(plan, plan.within(target), journal, limit.tell)
    assert limit.reason == "stopped after 1 row that failed"
    assert 1 <= len(journal.results()) < len(plan.rows())
    failing = [result for result in journal.results().values() if result.status in VIOLATIONS]
    assert len(failing) == 1
