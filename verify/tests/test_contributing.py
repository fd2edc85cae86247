"""CONTRIBUTING says what it takes to add an operation: followed in a copy of the repository, it is judged."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
JUDGE = """
import json
from types import SimpleNamespace
import torch
from veriformer.verify import check

def judged(act):
    def squared_relu(x):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"x: expected a tensor, got {type(x).__name__}; pass one")
        return act(x)
    mine = SimpleNamespace(squared_relu=squared_relu)
    rows = check(mine, only=["squared_relu"], dtype=["fp32"], profile="quick").results
    return {row.requirement.partition(".")[2]: row.status for row in rows}

print(json.dumps({
    "right": judged(lambda x: torch.relu(x).square()),
    "both sides": judged(lambda x: x.square()),
    "half the slope": judged(lambda x: torch.relu(x) * torch.relu(x).detach()),
}))
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What is said of implementations, in a copy of the repository in which the page was followed."""
    copy = tmp_path_factory.mktemp("repository")
    for root in ("spec", "verify"):
        shutil.copytree(ROOT / root, copy / root, ignore=shutil.ignore_patterns("*.pyc", "tests"))
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, flags=re.DOTALL)
    for path, text in blocks:
        file = copy / path
        before = file.read_text(encoding="utf-8") + "\n\n" if file.exists() else ""
        file.write_text(before + text, encoding="utf-8")
    listed = copy / "spec/veriformer/spec/requirements/__init__.py"
    there = listed.read_text(encoding="utf-8").replace("_MODULES = (", '_MODULES = (\n    "squared_relu",', 1)
    listed.write_text(there, encoding="utf-8")
    paths = os.pathsep.join((str(copy / "spec"), str(copy / "verify"), str(ROOT / "impl")))
    command, environment = [sys.executable, "-c", JUDGE], {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_an_operation_added_as_the_page_says_is_judged(verdicts: dict[str, dict[str, str]]) -> None:
    slugs = {"contract", "equation", "gradient", "layout", "one_sided", "purity", "refusal", "refusal_names_argument"}
    assert verdicts["right"] == dict.fromkeys(slugs, "pass")


@pytest.mark.parametrize(("wrong", "seen"), [("both sides", "one_sided"), ("half the slope", "gradient")])
def test_what_is_wrong_with_it_is_seen(verdicts: dict[str, dict[str, str]], wrong: str, seen: str) -> None:
    assert verdicts[wrong][seen] == "fail"
