"""Findings of what an operation computes are told while a run goes on, and change nothing of what it gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.made_results import finding
from veriformer.spec.requirement import Weight
from veriformer.verify.engine import probing, remote, work
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan
from veriformer.verify.results import Result, Status, json_safe
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.shipping import Shipped
from veriformer.workers.session import Item, Outcome, Session

FILE = """
import torch


def softmax(z, dim=-1):
    return torch.softmax(z, dim)


def rms_norm(x, weight=None, *, eps=1e-6):
    y = 1.5 * x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return y if weight is None else y * weight
"""


@dataclass
class Place:
    """An executor that answers for rows and findings by what these tests say.

    failing: keys of the rows that fail. weight, follows: of the finding of the others that fail. asked: by name of an
    item that asks for findings, the keys of its rows.
    """

    plan: Plan
    failing: frozenset[str]
    weight: Weight = Weight.WRONG
    follows: str | None = None
    dashboard: str = ""
    asked: dict[str, list[str]] = field(default_factory=dict)

    def session(self, plan: Plan, work: str, **fields: Any) -> Session:
        return Session(work=work, payload=fields)

    def controller(self, session: Session) -> Place:
        return self

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def resources(self) -> list[Mapping[str, float]]:
        return [{"threads": 1}]

    def run(self, items: Iterable[Item], tell: Callable[[Item, Outcome], None], extra: Callable[[Item], Any]) -> None:
        waiting = list(items)
        while waiting:
            left = {one.name for one in waiting}
            item = next(one for one in waiting if left.isdisjoint(one.needs))
            waiting.remove(item)
            tell(item, Outcome(value=self.answer(item.name, extra(item))))

    def answer(self, name: str, said: Any) -> Any:
        rows = {row.key: row for row in self.plan.rows()}
        if name in rows:
            status = Status.FAIL if name in self.failing else Status.PASS
            return {"result": json_safe(rows[name].result(status, message="off").to_dict()), "changes": {}, "seen": {}}
        keys = self.asked[name] = [Result.from_dict(row).key for row in said["rows"]]
        operation = name.partition(".")[0]
        own = finding(operation, self.weight, operation=operation, rows=tuple(keys), follows=self.follows)
        return [own.to_dict()] if keys else []


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("early") / "mine.py"
    file.write_text(FILE)
    return file


def told(place: Any, folder: Path, waive: Callable[[Result], Result] = lambda row: row) -> list[str | Finding]:
    """Run the plan of a place; return the rows by their requirements and the findings, in the order of telling."""
    plan, said = place.plan, list[str | Finding]()
    journal = Journal(folder / "journal")
    journal.begin(plan)
    described = probing.describe(load(plan.target), "cpu")
    remote.run(
        plan,
        described,
        journal,
        place,
        tell=lambda row: said.append(row.requirement),
        find=said.append,
        waive=waive,
    )
    return said


def judgement_of(file: Path, monkeypatch: pytest.MonkeyPatch) -> work.Judgement:
    monkeypatch.setattr(work, "confine", lambda plan: None)  # the process is not its own
    plan = Plan(target=str(file), only=("rms_norm.equation",), dtypes=("fp64",), profile="quick")
    return work.Judgement({"plan": json_safe(asdict(plan)), "target": asdict(Shipped(str(file), str(file)))})


def of(file: Path, *failing: str, **options: Any) -> Place:
    plan = Plan(target=str(file), only=("softmax", "rms_norm"), dtypes=("fp32",))
    return Place(plan, frozenset(f"{slug}[fp32-cpu]" for slug in failing), **options)


def test_the_finding_of_an_equation_is_told_before_other_rows_and_once(file: Path, tmp_path: Path) -> None:
    place = of(file, "rms_norm.equation", "rms_norm.gradient", "rms_norm.batch")
    said = told(place, tmp_path)
    (one,) = (found for found in said if isinstance(found, Finding))
    assert one.operation == "rms_norm"
    assert one.where == {"file": str(file), "line": 9}
    first = said[: said.index(one)]
    assert first == ["softmax.contract", "softmax.equation", "rms_norm.contract", "rms_norm.equation"]
    assert place.asked == {
        "softmax.equation": [],
        "softmax.gradient": [],
        "rms_norm.equation": ["rms_norm.equation[fp32-cpu]"],
        "rms_norm.gradient": [],
    }


def test_where_the_equation_holds_the_gradient_and_what_it_may_follow_from_are_looked_into(
    file: Path, tmp_path: Path
) -> None:
    place = of(file, "rms_norm.gradient", "rms_norm.purity", "rms_norm.batch")
    said = told(place, tmp_path)
    (one,) = (found for found in said if isinstance(found, Finding))
    assert place.asked["rms_norm.equation"] == []
    assert set(one.rows) == {"rms_norm.gradient[fp32-cpu]", "rms_norm.purity[fp32-cpu]"}
    assert "rms_norm.batch" in said[said.index(one) :]


@pytest.mark.parametrize("options", [{"weight": Weight.IMPRECISE}, {"follows": "softmax"}])
def test_findings_that_violate_nothing_or_are_another_operations_are_not_told(
    options: dict[str, Any], file: Path, tmp_path: Path
) -> None:
    said = told(of(file, "rms_norm.equation", **options), tmp_path)
    assert not any(isinstance(one, Finding) for one in said)


def test_known_failures_are_not_looked_into(file: Path, tmp_path: Path) -> None:
    place = of(file, "rms_norm.equation")
    told(place, tmp_path, lambda row: replace(row, status=Status.KNOWN_FAIL) if row.status is Status.FAIL else row)
    assert set(map(tuple, place.asked.values())) == {()}


def test_nothing_is_looked_into_twice_where_the_run_ends_with_the_equation(file: Path, tmp_path: Path) -> None:
    place = of(file, "rms_norm.equation")
    place.plan = replace(place.plan, only=("rms_norm.equation",))
    told(place, tmp_path)
    assert place.asked == {}


def test_what_is_called_for_causes_leaves_the_process_as_it_was(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(*_: object) -> None:
        torch.set_default_dtype(torch.float64)
        os.environ["SET"] = "otherwise"

    monkeypatch.setenv("SET", "before")
    monkeypatch.setattr(work.everything, "diagnose_operations", change)
    assert judgement_of(file, monkeypatch).run("rms_norm", {"seconds": 9.0, "rows": []}) == []
    assert torch.get_default_dtype() is torch.float32
    assert os.environ["SET"] == "before"


def test_what_is_called_for_causes_is_no_part_of_what_the_rows_have_run(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judgement = judgement_of(file, monkeypatch)
    result = judgement.run("rms_norm.equation[fp64-cpu]", {})["result"]
    watch = judgement.target.watch
    assert watch is not None
    assert watch.seen
    watch.begin()
    watch.seen.clear()
    (entry,) = judgement.run("rms_norm", {"seconds": 9.0, "rows": [result]})
    assert Finding.from_dict(entry).what == "rms_norm: the result is 1.5 times what it should be"
    assert not watch.seen
