"""Growth of times: judged on planted times, and once on real ones."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from veriformer.bench.cli import bench
from veriformer.bench.document import Benchmarks
from veriformer.bench.scaling import measure
from veriformer.bench.scaling.measure import Series, judge
from veriformer.bench.scaling.sweeps import SWEEPS, band, chosen, fit
from veriformer.bench.verdicts import Verdict

VALUES = [256, 406, 645, 1024, 1625, 2580, 4096]


def planted(name, exponent, ceiling=float("inf"), seconds=1e-7):
    random = np.random.default_rng(0)
    (sweep,) = (s for s in SWEEPS if s.name == name)
    processes = [{n: list(seconds * n**exponent * np.exp(random.normal(0, 0.02, 3))) for n in VALUES} for _ in range(4)]
    return Series(sweep, VALUES, processes, ceiling)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "exponent", "verdict"),
    [
        ("attention over n, forward", 1.9, Verdict.CONFIRMED),
        ("attention over n, forward", 3, Verdict.REFUTED),
        ("cross_entropy over N, forward", 1, Verdict.CONFIRMED),
        ("cross_entropy over N, forward", 2, Verdict.REFUTED),
        ("cached_attention over t, forward", 2, Verdict.REFUTED),
        ("cross_entropy over N, forward", 1.2, Verdict.INCONCLUSIVE),
    ],
)
def test_a_slope_is_held_against_the_formula(name, exponent, verdict):
    (found,) = judge("mine", [planted(name, exponent)])
    assert found.verdict is verdict, found.reason


def test_copies_excuse_growth_only_where_every_process_shows_it_and_they_can_take_that_long():
    steep, flat = {n: 1e-9 * n**2 for n in VALUES}, {n: 1e-6 * n for n in VALUES}
    for copies, seconds, verdict in (
        ([steep, steep], 1e-9, Verdict.CONFIRMED),
        ([steep, flat], 1e-9, Verdict.REFUTED),
        ([steep, steep], 1e-7, Verdict.REFUTED),
    ):
        series = planted("cross_entropy over N, forward", 2, seconds=seconds)
        series.copies = copies
        (found,) = judge("mine", [series])
        assert found.verdict is verdict, found.reason


def test_what_is_quicker_than_its_products_is_invalid():
    (found,) = judge("mine", [planted("attention over n, forward", 2, ceiling=1e9, seconds=1e-10)])
    assert found.verdict is Verdict.INVALID
    assert "times as fast as its products" in found.reason


def test_a_process_that_ended_and_a_short_span_are_said():
    fault, short = planted("rms_norm over N, forward", 1), planted("rms_norm over N, forward", 1)
    fault.fault = "its process was ended by signal 9"
    short.values = short.values[:3]
    found = judge("mine", [fault, short])
    assert [one.verdict for one in found] == [Verdict.INVALID, Verdict.INCONCLUSIVE]


@pytest.mark.whole
def test_every_sweep_has_a_prediction():
    for sweep in SWEEPS:
        low, high = band(sweep.costs(VALUES), VALUES)
        assert 0 <= low <= high <= 2.01, sweep.name


def test_the_terms_of_the_formula_are_recovered_from_times():
    costs = {"FLOPs": [float(n**2) for n in VALUES], "bytes": [float(n) for n in VALUES]}
    seconds = [3e-9 * n**2 + 5e-8 * n + 2e-6 for n in VALUES]
    found = fit(costs, seconds)
    assert [round(found[name] * unit, 2) for name, unit in (("FLOPs", 1e9), ("bytes", 1e8), ("call", 1e6))] == [3, 5, 2]


@pytest.mark.whole
def test_a_quadratic_loss_is_refuted_with_a_clock(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "_LONGEST", 0.2)
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "def cross_entropy(logits, target, *, reduction='mean', **options):\n"
        "    same = (target[:, None] == target).float().mean()\n"
        "    loss = torch.nn.functional.cross_entropy(logits, target)\n"
        "    return loss + 0 * same\n"
    )
    words = ["scaling", str(file), "--only", "cross_entropy over N, forward", "--clock", "cpu", "--processes", "2"]
    for _ in range(5):  # on a busy machine the sizes that fit may be too few to tell
        result = CliRunner().invoke(bench, [*words, "--json", str(tmp_path / "json")])
        (found,) = Benchmarks.from_dict(json.loads((tmp_path / "json").read_text())).scalings
        if found.verdict is not Verdict.INCONCLUSIVE:
            break
    assert result.exit_code == 1, result.output
    assert found.verdict is Verdict.REFUTED
    assert found.elasticity > 1.5
    assert "cross_entropy over N, forward: grows as N^" in result.output


def test_a_name_selects_its_sweeps():
    assert {s.operation for s in chosen(["rms_norm", "attention over d*"])} == {"rms_norm", "attention"}
    assert CliRunner().invoke(bench, ["scaling", "torch", "--only", "sofmax"]).exit_code == 2
