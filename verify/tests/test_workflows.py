"""Workflows and the action for other projects: what linters do not ask for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from veriformer.verify import cli

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FILES = [*WORKFLOWS, ROOT / "action.yml"]


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_actions_are_pinned_by_commit_with_their_version(file):
    used = re.findall(r"uses: (?!\./)(.*)", file.read_text(encoding="utf-8"))
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used), used


def test_an_action_has_one_version_everywhere():
    used = {one for file in FILES for one in re.findall(r"uses: ([\w-]+/[\w-]+)\S*@(\w+)", file.read_text())}
    assert len(used) == len({name for name, _ in used}), sorted(used)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_jobs_have_permissions_and_a_time_limit(file):
    workflow = read(file)
    assert "permissions" in workflow
    for name, job in workflow["jobs"].items():
        assert "timeout-minutes" in job, name


def test_what_runs_on_a_machine_of_ours_comes_from_no_fork():
    own = "github.event.pull_request.head.repo.full_name == github.repository"
    jobs = [job for file in WORKFLOWS for job in read(file)["jobs"].values() if "self-hosted" in job["runs-on"]]
    assert jobs
    assert all(own in job["if"] and "environment" in job for job in jobs)


def test_the_lines_for_another_project_are_few_and_name_inputs_of_the_action():
    blocks = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8"), re.DOTALL
    )
    action, called = read(ROOT / "action.yml"), read(ROOT / ".github" / "workflows" / "verify-reusable.yml")
    ours, theirs, hooks = map(yaml.safe_load, blocks)
    assert blocks[0].count("\n") <= 10
    assert ours["jobs"]["veriformer"]["steps"][-1]["with"].keys() <= action["inputs"].keys()
    assert theirs["jobs"]["veriformer"]["with"].keys() <= called[True]["workflow_call"]["inputs"].keys()  # YAML's on
    known = {hook["id"] for hook in read(ROOT / ".pre-commit-hooks.yaml")}
    assert {hook["id"] for hook in hooks[0]["hooks"]} <= known


def test_options_that_the_action_passes_are_options_of_the_command():
    script = "".join(step.get("run", "") for step in read(ROOT / "action.yml")["runs"]["steps"])
    called = re.findall(r"\$VERIFORMER\" verify .*", script)
    words = {word for line in called for word in re.findall(r" (--[\w-]+)", line)}
    known = {word for option in cli.verify.params for word in (*option.opts, *option.secondary_opts)}
    assert words
    assert words <= known
