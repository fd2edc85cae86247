import json

import pytest
from click.testing import CliRunner

from veriformer.bench import assess, counts, document, targets
from veriformer.bench.cli import bench
from veriformer.bench.commands import options
from veriformer.bench.counts import Case
from veriformer.bench.polynomials import Axis, Grid
from veriformer.bench.predicted_costs import AS_PRINTED, IN_BLOCKS


@pytest.fixture(autouse=True)
def small(monkeypatch, attention):
    """Two small families of calls and two targets of the tests' own, one of which costs other than is claimed."""
    letters = {"B": 1, "H": 1, "G": 1, "n_q": "n", "n_k": "n", "d_k": 2, "d_v": 2}
    case = Case("small", Grid((Axis("n", (64, 96, 128), 256),)), letters, fixed={"w": 4, "T": 64})
    monkeypatch.setattr(counts, "RECTANGULAR", case)
    monkeypatch.setattr(counts, "SQUARE", case)
    monkeypatch.setattr(counts, "causal", lambda block: case)
    shipped = {"good": AS_PRINTED, "bad": IN_BLOCKS}
    monkeypatch.setattr(options, "SHIPPED", tuple(shipped))
    monkeypatch.setattr(targets, "NAMES", tuple(shipped))
    monkeypatch.setattr(assess, "FAMILIES", ())
    monkeypatch.setattr(targets, "find", lambda name, claim: targets.Target(name, attention, shipped[name], False))


def run(*words):
    return CliRunner().invoke(bench, ["counts", "--jobs", "1", *words])


@pytest.mark.whole
def test_counts_that_agree_end_with_0_and_are_written(tmp_path):
    file = tmp_path / "new" / "benchmarks.json"
    found = run("good", "--json", str(file))
    assert found.exit_code == 0, found.output
    assert found.output.count("confirmed      good") == 6
    assert found.output.endswith("\n6 confirmed\n")
    written = document.read(file)
    assert [c.verdict for c in written.counts] == [document.Verdict.CONFIRMED] * 6
    assert written.to_dict() == json.loads(file.read_text())


def test_a_refuted_cost_ends_with_1_and_shows_its_witness():
    found = run("bad")
    assert found.exit_code == 1
    assert "at n = 64: counted 98304, predicted 114688" in found.output


@pytest.mark.whole
def test_all_targets_are_counted_where_none_is_named():
    found = run()
    assert found.exit_code == 1
    assert "good" in found.output
    assert "bad" in found.output


def test_a_file_that_cannot_be_written_is_an_unusable_argument(tmp_path):
    (tmp_path / "file").write_text("")
    found = run("good", "--json", str(tmp_path / "file" / "below.json"))
    assert found.exit_code == 2
    assert "--json" in found.output


def test_an_unknown_target_ends_with_2(monkeypatch):
    monkeypatch.undo()
    found = run("nonsense")
    assert found.exit_code == 2
    assert "or one of impl, impl:reference, impl:tiled" in found.output
    assert set(options.SHIPPED) == {*targets.NAMES, *targets.OTHERS}
