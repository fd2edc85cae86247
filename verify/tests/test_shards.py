"""A run in parts, put together, equals the run in one; whatever does not fit together is refused and named."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from veriformer.verify import results
from veriformer.verify.commands.merge import merge as command
from veriformer.verify.engine import merging, probing, remote
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.parts import NotOneRunError, costs
from veriformer.verify.engine.plan import Plan
from veriformer.verify.engine.run import results_of, run_here
from veriformer.verify.mutants import merging as kills
from veriformer.verify.mutants.matrix import KillMatrix, cells
from veriformer.verify.mutants.mutation_run import EVERYONE
from veriformer.verify.results import Results
from veriformer.verify.targets.loading import load

pytestmark = pytest.mark.usefixtures("warm")
TARGET = """
import torch

def softmax(z, dim=-1):
    return torch.softmax(z, dim)

def rms_norm(x, weight=None, *, eps=1e-6):
    y = 1.5 * x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    return y if weight is None else y * weight
"""
ROWS = ("softmax.equation", "softmax.simplex", "rms_norm.equation", "rms_norm.unit", "rms_norm.batch")
OF = 16


def ran(plan: Plan, folder: Path) -> Results:
    """The rows of a plan, run in this process, without findings."""
    target = plan.within(load(plan.target))
    journal = Journal(folder / "journal")
    journal.begin(plan)
    run_here(plan, target, journal, lambda result: None)
    return results_of(plan, probing.describe(target, "cpu"), journal, datetime.now(UTC), time.perf_counter())


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    file = tmp_path_factory.mktemp("target") / "mine.py"
    file.write_text(TARGET)
    asked = Plan(target=str(file), only=ROWS, dtypes=("fp32", "bf16"), timeout_s=600)
    return replace(asked, domains=probing.domains(load(str(file)), asked.operations(), "cpu", asked.dtypes))


@pytest.fixture(scope="module")
def parts(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    found = {}
    for number in range(1, OF + 1):
        mine, shard = merging.shard_of(plan, number, OF, {})
        found[f"{number}.json"] = replace(ran(mine, tmp_path_factory.mktemp("part")), shard=shard)
    return found


def timeless(found: Results) -> dict[str, Any]:
    document = results.json_safe(found.to_dict())
    results.validate(document)
    for key in ("started", "duration_s", "environment"):
        del document[key]
    for row in document["results"]:
        del row["seconds"]
    return dict(document)


def files(parts: dict[str, Results], folder: Path) -> list[str]:
    for name, part in parts.items():
        results.write(part, folder / name)
    return [str(folder / name) for name in parts]


@pytest.fixture(scope="module")
def whole(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> Results:
    return ran(plan, tmp_path_factory.mktemp("whole"))


def test_sixteen_parts_equal_the_whole_run(plan: Plan, parts: dict[str, Results], whole: Results) -> None:
    merged = merging.merge(parts)
    assert merged.missing == []
    assert merged.plan == plan
    assert timeless(merged.results) == timeless(whole)
    assert len(whole.violations) > 3
    assert sum(not part.results for part in parts.values()) == OF - 4  # two operations in two formats


def test_who_interrupts_the_search_for_causes_keeps_the_requirements(
    plan: Plan, whole: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    found = replace(whole)
    monkeypatch.setattr("veriformer.workers.processes.Processes.run", interrupt)
    assert remote.add_findings(found, plan, remote.Here(1)) == "interrupted"
    assert {slug for one in found.findings for slug in one.requirements} == {
        row.requirement for row in found.violations
    }


@pytest.mark.whole
def test_findings_and_verdict_of_parts_are_those_of_the_whole(
    plan: Plan, parts: dict[str, Results], whole: Results, tmp_path: Path
) -> None:
    whole = replace(whole)
    remote.add_findings(whole, plan, remote.Here(1))
    file = tmp_path / "merged.json"
    ended = CliRunner().invoke(command, [*files(parts, tmp_path), "--json", str(file), "--jobs", "1"])
    assert ended.exit_code == whole.exit_status == 1, ended.output
    assert timeless(results.read(file)) == timeless(whole)
    assert any(len(finding.requirements) > 1 for finding in whole.findings)


def test_where_the_target_is_not_here_findings_are_told_by_requirement(
    plan: Plan, parts: dict[str, Results], tmp_path: Path
) -> None:
    Path(plan.target).rename(tmp_path / "away.py")
    file = tmp_path / "merged.json"
    try:
        ended = CliRunner().invoke(command, [*files(parts, tmp_path), "--json", str(file), "--jobs", "1"])
    finally:
        (tmp_path / "away.py").rename(plan.target)
    assert ended.exit_code == 1, ended.output
    assert "findings are told by requirement" in ended.output
    assert {row.requirement for row in results.read(file).violations} <= {
        slug for finding in results.read(file).findings for slug in finding.requirements
    }


@pytest.mark.whole
def test_what_is_missing_is_said_and_the_run_is_invalid(parts: dict[str, Results], tmp_path: Path) -> None:
    (first, one), (second, two), *rest = ((name, part) for name, part in parts.items() if part.results)
    there = {**dict(rest), second: replace(two, results=two.results[1:])}
    assert first == "1.json"
    merged = merging.merge(there)
    assert merged.results.verdict is results.Verdict.INVALID
    assert "part 1/16 is missing" in merged.missing
    assert f"{len(one.results)} of {merged.results.planned} rows are in no file: {one.results[0].key}" in str(
        merged.missing
    )
    assert f"part 2/16 stopped before 1 of its {len(two.results)} rows: {two.results[0].key}" in merged.missing
    file = tmp_path / "merged.json"
    ended = CliRunner().invoke(command, [*files(there, tmp_path), "--json", str(file), "--jobs", "1"])
    assert ended.exit_code == 3
    assert "part 1/16 is missing" in ended.output
    assert results.read(file).verdict is results.Verdict.INVALID


def other(part: Results, **fields: Any) -> Results:
    assert part.shard is not None
    return replace(part, shard=replace(part.shard, **fields))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: other(p, plan={**p.shard.plan, "seed": "7"}), "seed 'slug' and '7'"),
        (lambda p: other(p, versions={**p.shard.versions, "torch": "1.0"}), "torch 1.0, not "),
        (lambda p: other(p, of=8), "is part 2/8 of a run"),
        (lambda p: other(p, number=1), "part 1 is there 2 times"),
        (lambda p: replace(p, suite={**p.suite, "commit": "abc"}), "and 'abc'"),
        (lambda p: replace(p, implementation={**p.implementation, "version": "2"}), "version None and '2'"),
        (lambda p: replace(p, domain={}), "found different domains"),
        (lambda p: replace(p, shard=None), "expected a part of a run"),
    ],
)
def test_parts_of_different_runs_are_refused_and_both_named(
    parts: dict[str, Results], change: Callable[[Results], Results], words: str, tmp_path: Path
) -> None:
    mixed = {**parts, "2.json": change(parts["2.json"])}
    with pytest.raises(NotOneRunError, match=r"1\.json|2\.json|16") as refused:
        merging.merge(mixed)
    assert words in str(refused.value)
    file = tmp_path / "merged.json"
    ended = CliRunner().invoke(command, [*files(mixed, tmp_path), "--json", str(file)])
    assert ended.exit_code == 3
    assert not file.exists()


def test_a_row_in_two_parts_is_refused(parts: dict[str, Results]) -> None:
    full = [(name, part) for name, part in parts.items() if part.results]
    (_, one), (name, two) = full[:2]
    assert one.shard
    assert two.shard
    twice = {**parts, name: other(two, rows=(*two.shard.rows, one.shard.rows[0]))}
    with pytest.raises(NotOneRunError, match="1 rows are there twice"):
        merging.merge(twice)


def test_another_suite_does_not_merge(parts: dict[str, Results]) -> None:
    old = {
        name: other(part, versions={**part.shard.versions, "suite": "0" * 12}) if part.shard else part
        for name, part in parts.items()
    }
    with pytest.raises(NotOneRunError, match="the suite of source 000000000000"):
        merging.merge(old)


@pytest.mark.whole
def test_parts_are_whole_groups_even_and_the_same_everywhere() -> None:
    whole = Plan(target="torch")
    seconds = {row.key: 1.0 + (row.dtype == "fp64") * (number % 7) for number, row in enumerate(whole.every_row())}
    found = [merging.shard_of(whole, number, OF, seconds) for number in range(1, OF + 1)]
    rows = [key for _, shard in found for key in shard.rows]
    assert sorted(rows) == sorted(row.key for row in whole.every_row())
    of_row = {key: shard.number for _, shard in found for key in shard.rows}
    groups: dict[str, set[int]] = {}
    for row in whole.every_row():
        groups.setdefault(row.group, set()).add(of_row[row.key])
    assert all(len(numbers) == 1 for numbers in groups.values())
    load = [sum(seconds[key] for key in shard.rows) for _, shard in found]
    dearest = max(sum(seconds[r.key] for r in whole.every_row() if r.group == group) for group in groups)
    assert max(load) <= max(dearest, 1.34 * sum(load) / OF)  # as good as longest-first is
    assert found == [merging.shard_of(whole, number, OF, seconds) for number in range(1, OF + 1)]


def test_what_an_earlier_run_does_not_know_costs_its_mean() -> None:
    assert costs({"a": [("x", 1.0)], "b": [("y", 2.0)], "c": [("z", 1.0)]}, {"x": 3.0, "z": 5.0}) == {
        "a": 3.0,
        "b": 8.0,
        "c": 5.0,
    }
    assert costs({"a": [("x", 1.0)], "b": [("y", 2.0)]}, {}) == {"a": 1.0, "b": 2.0}


@pytest.mark.whole
def test_parts_of_a_kill_matrix_equal_the_whole() -> None:
    chosen = ["mutant:LN-08", "mutant:RES-01", "mutant:ACT-03"]
    wanted = kills.Wanted(tuple(chosen), "slug", False)
    assert wanted.names() == chosen
    found = {name: tuple(cells(EVERYONE[name])) for name in chosen}
    parts = {}
    for number in range(1, 4):
        part = wanted.part(number, 3, {})
        mine = tuple(cell for name in part.rows for cell in found[name])
        document = KillMatrix(kills.MATRIX_PROFILE, "slug", mine, part).to_dict()
        parts[str(number)] = kills.of_document(document)
    whole, missing = kills.merge(parts)
    assert missing == []
    assert whole.to_dict() == KillMatrix(kills.MATRIX_PROFILE, "slug", sum(found.values(), ())).to_dict()
    _, missing = kills.merge({name: part for name, part in parts.items() if name != "2"})
    assert missing[0] == "part 2/3 is missing"
    assert parts["2"].shard
    changed = replace(parts["2"], shard=replace(parts["2"].shard, plan={**parts["2"].shard.plan, "seed": "8"}))
    with pytest.raises(NotOneRunError, match="seed 'slug' and '8'"):
        kills.merge({**parts, "2": changed})
