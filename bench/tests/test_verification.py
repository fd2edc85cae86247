import io

import pytest
from click.testing import CliRunner
from rich.console import Console

from veriformer.bench.cli import bench
from veriformer.bench.verification import Profile, show

pytestmark = pytest.mark.usefixtures("warm")
ROWS = [
    {"operation": "softmax", "examples": 20, "seconds": 1.0},
    {"operation": "softmax", "examples": 20, "seconds": 2.0},
    {"operation": "attention", "examples": 10, "seconds": 5.0},
    {"operation": "rope", "examples": None, "seconds": None},
]


def test_shares_are_of_all_that_the_workers_had():
    found = Profile(target="impl", profile="quick", jobs=2, wall_s=8.0, running_s=6.0, rows=ROWS)
    assert found.on_examples == 8 / 16
    assert found.by_operation() == [("attention", 1, 10, 5.0), ("softmax", 2, 40, 3.0), ("rope", 1, 0, 0)]
    text = io.StringIO()
    show(found, Console(file=text, width=120))
    assert "50% of the workers' time" in text.getvalue()
    assert "2.0 s before the first row" in text.getvalue()
    assert "75.0" in text.getvalue()


@pytest.mark.whole
def test_a_real_run_is_timed():
    found = CliRunner().invoke(bench, ["verification", "impl", "--jobs", "1", "--only", "causal_mask.equation"])
    assert found.exit_code == 0, found.output
    assert "causal_mask" in found.output
    assert "of the workers' time went to examples" in found.output


@pytest.mark.parametrize("word", ["no_such_module", "nowhere/mine.py"])
def test_a_target_that_is_none_is_an_unusable_argument(word):
    found = CliRunner().invoke(bench, ["verification", word, "--jobs", "1"])
    assert found.exit_code == 2
    assert word in found.output
