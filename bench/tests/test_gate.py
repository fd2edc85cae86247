"""Error rates of the regression gate on this machine: bounded in time, each share with its interval."""

import json

from click.testing import CliRunner

from veriformer.bench.cli import bench
from veriformer.bench.document import Benchmarks
from veriformer.bench.regression import gate
from veriformer.bench.statistics import Block


def run(monkeypatch, tmp_path, *words):
    """With times that are made up: the planted ones a tenth longer, by exactly so much."""
    compared = []

    def measure(base, head, found, plan, tell):
        compared.append(plan.planted)
        for series in found.values():
            series.blocks += [Block([1.0, 1.0], [1 + plan.planted] * 2)] * 3
            series.fresh = series.blocks[0]

    monkeypatch.setattr(gate, "measure", measure)
    file = tmp_path / "json"
    found = CliRunner().invoke(bench, ["aa", "--simulations", "2", "--json", str(file), *words])
    assert found.exit_code == 0, found.output
    return found.output, Benchmarks.from_dict(json.loads(file.read_text())).gate, compared


def test_both_kinds_are_tried_as_often_as_asked_and_shown_with_their_intervals(monkeypatch, tmp_path):
    said, found, compared = run(monkeypatch, tmp_path, "--tries", "7", "--planted", "4")
    assert (compared.count(0.0), compared.count(0.1)) == (3, 2)  # three workloads share their processes
    assert "impl beside itself: 0 of 9 (95 %: 0.0% to 33.6%)" in said
    assert "causal_lm, decoding, 10% slower: 2 of 2 (95 %: 15.8% to 100.0%)" in said
    assert (found.found[-1].what, found.found[-1].count) == ("all of them, 10% slower", 6)


def test_no_comparison_is_begun_after_its_time(monkeypatch, tmp_path):
    said, _, compared = run(monkeypatch, tmp_path, "--tries", "7", "--planted", "4", "--minutes", "1e-9")
    assert not compared
    assert "impl beside itself: 0 of 0" in said
