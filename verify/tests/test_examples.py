"""The examples run as they say, and what they are said to show is shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.warm import INTERPRETER
from veriformer.spec.requirement import Weight
from veriformer.verify import check, load

pytestmark = pytest.mark.usefixtures("warm")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.whole
def test_wrong_example_is_named() -> None:
    target = load(f"{EXAMPLES / 'encoder_layers.py'}:LayerNorm")
    assert target.recognised["recognised"][0]["name"] == "LayerNorm"
    found = check(target.implementation, only=["layer_norm.equation"], dtype=["fp32"])
    assert found.verdict == "violated"
    assert found.findings[0].weight is Weight.WRONG
    assert "ε is added to the standard deviation" in found.findings[0].what


@pytest.mark.whole
def test_adapter_is_judged() -> None:
    found = check(load(str(EXAMPLES / "adapter.py")).implementation, only=["attention.equation"], dtype=["fp32"])
    assert found.verdict == "holds"


@pytest.mark.whole
@pytest.mark.parametrize(
    "command", [["as_a_library.py"], ["-m", "pytest", "-q", "-p", "no:cacheprovider", "in_your_tests.py"]]
)
def test_script_runs(command: list[str]) -> None:
    python = INTERPRETER if "pytest" in command else sys.executable  # which rewrites only what is not imported yet
    done = subprocess.run([python, *command], cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
