"""CONTRIBUTING says what it takes to add something: followed in a copy of the repository, it works."""

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
ADDED = (  # what the page says in words: where each of its blocks is listed
    ("spec/veriformer/spec/requirements/__init__.py", "_MODULES = (", '"squared_relu",'),
    ("spec/veriformer/spec/operations/layers.py", "OPERATIONS = (", "SQUARED_RELU,"),
    (
        "spec/veriformer/spec/requirements/layers.py",
        'and a weight that is not $[d]$ in the dtype of "\n    "$x$ are refused.",',
        "orthogonal=_ORTHOGONAL,",
    ),
    ("verify/veriformer/verify/operations/layers/rms_norm.py", "CHECKS = (", "_ORTHOGONALITY, "),
    (
        "verify/veriformer/verify/mutants/faults/layers.py",
        "FAULTS: dict[str, dict[str, Fault]] = {",
        '"LN-12": _LN_12,',
    ),
    (
        "verify/veriformer/verify/targets/__init__.py",
        "_SHIPPED: dict[str, tuple[str, str]] = {",
        '"torch:refs": ("veriformer.verify.targets.torch_refs", "TARGET"),',
    ),
    ("spec/veriformer/spec/layers/rms_norm.py", "steps=(", "_along_itself,"),
)
JUDGE = """
import json
from types import SimpleNamespace
import torch
from veriformer import impl
from veriformer.spec.layers.rms_norm import EQUATIONS
from veriformer.spec.proofs.prover import prove, sabotaged
from veriformer.verify import check, load

def statuses(implementation, only):
    rows = check(implementation, only=[only], dtype=["fp32"], profile="quick").results
    return {row.requirement.partition(".")[2]: row.status for row in rows}

def activation(act):
    def squared_relu(x):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"x: expected a tensor, got {type(x).__name__}; pass one")
        return act(x)
    return statuses(SimpleNamespace(squared_relu=squared_relu), "squared_relu")

def norm(x, weight=None, *, eps=1e-6):
    y = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt().detach()
    return y if weight is None else y * weight

step = next(step for step in EQUATIONS[0].steps if step.slug == "along-itself")
refs = load("torch:refs").implementation
print(json.dumps({
    "right": activation(lambda x: torch.relu(x).square()),
    "both sides": activation(lambda x: x.square()),
    "half the slope": activation(lambda x: torch.relu(x) * torch.relu(x).detach()),
    "law": statuses(SimpleNamespace(rms_norm=impl.rms_norm), "rms_norm.orthogonal"),
    "no projection": statuses(SimpleNamespace(rms_norm=norm), "rms_norm.orthogonal"),
    "mutant": statuses(load("mutant:LN-12").implementation, "rms_norm.near_eps"),
    "refs": statuses(SimpleNamespace(logsumexp=refs.logsumexp), "logsumexp.equation"),
    "step": {"proved": prove(step, cached=False).status},
    "sabotage": {one.slug: prove(one, cached=False).status for one in sabotaged(step)},
}))
"""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return the verdicts on implementations, in a copy of the repository in which the page was followed."""
    copy = tmp_path_factory.mktemp("repository")
    for root in ("spec", "verify"):
        shutil.copytree(ROOT / root, copy / root, ignore=shutil.ignore_patterns("*.pyc", "tests"))
    for path, _, before, text in re.findall(r"```python\n# (\S+?)(, before (\w+))?\n(.*?)```", PAGE, flags=re.DOTALL):
        file = copy / path
        there = file.read_text(encoding="utf-8") + "\n\n" if file.exists() else ""
        place = re.search(rf"^{before}\b", there, flags=re.MULTILINE) if before else None
        at = place.start() if place else len(there)
        file.write_text(f"{there[:at]}{text}\n\n{there[at:]}", encoding="utf-8")
    for path, line, entry in ADDED:
        there = (copy / path).read_text(encoding="utf-8")
        assert line in there, path
        (copy / path).write_text(there.replace(line, f"{line}\n    {entry}", 1), encoding="utf-8")
    bugs = copy / "verify/veriformer/verify/mutants/known_bugs.json"
    (bug,) = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    bugs.write_text(json.dumps([*json.loads(bugs.read_text(encoding="utf-8")), json.loads(bug)]), encoding="utf-8")
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


def test_a_law_added_as_the_page_says_is_kept_and_broken(verdicts: dict[str, dict[str, str]]) -> None:
    assert verdicts["law"]["orthogonal"] == "pass"
    assert verdicts["no projection"]["orthogonal"] == "fail"


def test_a_known_bug_added_as_the_page_says_is_killed(verdicts: dict[str, dict[str, str]]) -> None:
    assert verdicts["mutant"]["near_eps"] == "fail"


def test_a_target_added_as_the_page_says_is_judged(verdicts: dict[str, dict[str, str]]) -> None:
    assert verdicts["refs"]["equation"] == "pass"


def test_a_proof_step_added_as_the_page_says_is_proved_and_its_sabotage_is_not(
    verdicts: dict[str, dict[str, str]],
) -> None:
    assert verdicts["step"] == {"proved": "proved"}
    assert verdicts["sabotage"]
    assert set(verdicts["sabotage"].values()) == {"refuted"}
