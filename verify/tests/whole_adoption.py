"""Not a test (``nox -s adoption``): another project takes up the action in the ten lines of docs/how-to/ci.md.

    python verify/tests/whole_adoption.py --package out/dist/veriformer-….whl

A repository of one module is made, and a branch of each kind: unchanged, with a planted fault, and one whose base has
that fault as well. The steps of action.yml are run as they stand; the installation that is kept from job to job is the
environment that runs this, in which the wheel is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from github_steps import Job

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
"""By the clock, that an unchanged pull request of one operation may take, with its installation and its base kept."""

MODULE = '''"""Layers of somebody else's."""

import torch


def rms_norm(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
'''
RIGHT, WRONG = "x.pow(2).mean(-1, keepdim=True) + eps", "(x.abs().mean(-1, keepdim=True) + eps).pow(2)"
TABLE = '[tool.veriformer]\nprofile = "quick"\njobs = 1\nonly = ["rms_norm"]\n'


class Repository:
    """The other project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit(
            {"layers.py": MODULE, "pyproject.toml": TABLE, ".github/workflows/ci.yml": "\n".join(workflow_lines())}
        )

    def git(self, *words: str) -> str:
        """Call git as somebody."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *who, *words], cwd=self.folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    def commit(self, files: dict[str, str]) -> str:
        """Commit files and return the commit."""
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "Change something")
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, base: str, files: dict[str, str]) -> None:
        """Begin a branch at a commit, with one commit more."""
        self.git("switch", "--quiet", "--create", name, base)
        self.commit(files)


def workflow_lines() -> list[str]:
    """Return the workflow of docs/how-to/ci.md."""
    text = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
    return re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0].splitlines()


def action_inputs() -> dict[str, Any]:
    """Return what the workflow gives to the action."""
    workflow = yaml.safe_load("\n".join(workflow_lines()))
    (job,) = workflow["jobs"].values()
    (found,) = [one for one in job["steps"] if one["uses"].startswith("veriformer/")]
    return dict(found["with"])


def run_job(repository: Repository, folder: Path, number: int, package: str, base: str | None, **inputs: str) -> Job:
    """Run the action on what is checked out: for a push, or a pull request against a commit."""
    event: dict[str, Any] = {"event_name": "push", "sha": repository.git("rev-parse", "HEAD"), "action_path": str(ROOT)}
    if base is not None:
        event |= {"event_name": "pull_request", "event": {"pull_request": {"base": {"sha": base}}}}
    begun, spent = time.perf_counter(), _processor_s()
    done = Job(
        action=ROOT,
        workspace=repository.folder,
        scratch=folder / f"job-{number}",
        caches=folder / "caches",
        kept=Path(sys.prefix),
        inputs={**action_inputs(), "package": package, "output": f".git/veriformer-{number}", **inputs},
        github=event,
        environment={"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""},
    ).run()
    done.processor_s = _processor_s() - spent
    colour = "red" if done.failed else "green"
    print(f"  {colour} after {time.perf_counter() - begun:.1f} s, {done.processor_s:.1f} s of processor", flush=True)
    print("".join(f"      {spent:5.1f} s  {name}\n" for name, spent in done.seconds.items()), end="", flush=True)
    return done


def _processor_s() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def check(what: str, holds: bool, done: Job) -> None:
    """Say what was asked for, and end with the log where it does not hold."""
    print(f"  {'ok' if holds else 'NOT'}  {what}", flush=True)
    if not holds:
        raise SystemExit(done.log)


def main() -> None:
    """Rehearse it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--package", required=True)
    package = str(Path(parser.parse_args().package).resolve())
    with tempfile.TemporaryDirectory(prefix="adoption-") as name:
        rehearse(Path(name), package)


def rehearse(folder: Path, package: str) -> None:
    """Push main, then send pull requests."""
    written = workflow_lines()
    assert len(written) <= 10, written
    repository = Repository(folder / "theirs")
    main_branch = repository.git("rev-parse", "HEAD")
    where = MODULE.splitlines().index("def rms_norm(x, weight, eps=1e-6):") + 1

    def run(title: str, number: int, base: str | None = main_branch, **inputs: str) -> Job:
        print(title, flush=True)
        return run_job(repository, folder, number, package, base, **inputs)

    check_push(run("push of main", 0, None), folder)
    repository.branch("unchanged", "main", {"README": "more\n"})
    check_unchanged(run("pull request that changes nothing, its base kept", 1))
    repository.branch("fault", "main", {"layers.py": MODULE.replace(RIGHT, WRONG)})
    check_fault(run("pull request with a planted fault", 2), where, repository.folder)
    fault = repository.git("rev-parse", "HEAD")
    repository.branch("after", fault, {"README": "more\n"})
    other = {"fail-on": "regression", "python-version": ""}
    check_known_fault(
        run("pull request on that fault, its base not kept, in the Python that is there", 3, fault, **other)
    )


def check_push(done: Job, folder: Path) -> None:
    """Check the push of the default branch."""
    check("green", not done.failed, done)
    check("its results are kept", any("base" in file.name for file in (folder / "caches").iterdir()), done)
    check("no error is annotated", "::error" not in done.log, done)


def check_unchanged(done: Job) -> None:
    """Check the pull request that changes nothing."""
    check("green", not done.failed, done)
    check("the base is not judged again", "--- Verify the base" not in done.log, done)
    check("the summary says that nothing is worse", "against the base: nothing is worse" in done.summary, done)
    check(f"within {SECONDS:g} s by the clock", sum(done.seconds.values()) <= SECONDS, done)


def check_fault(done: Job, line: int, workspace: Path) -> None:
    """Check the pull request with a fault."""
    check("red", done.failed, done)
    wanted = f"::error file=layers.py,line={line},title=veriformer%3A rms_norm."
    check(f"annotated: {wanted}…", wanted in done.log, done)
    check("something is worse, and the summary says so", "against the base: something is worse" in done.summary, done)
    given = dict(done.used)
    log = json.loads((workspace / given["github/codeql-action/upload-sarif"]["sarif_file"]).read_text(encoding="utf-8"))
    places = [x["locations"][0]["physicalLocation"] for x in log["runs"][0]["results"] if x["level"] == "error"]
    here = {(x["artifactLocation"]["uri"], x["region"]["startLine"]) for x in places}
    check("SARIF has it at file and line", here == {("layers.py", line)}, done)
    page = workspace / given["actions/upload-artifact"]["path"] / "report" / "index.html"
    check("the artifact has the page", page.is_file(), done)


def check_known_fault(done: Job) -> None:
    """Check the pull request whose base has the fault already."""
    check("green with fail-on: regression", not done.failed, done)
    check("the base was judged", "--- Verify the base (exit status 0)" in done.log, done)
    check("red without", done.steps["verify"]["outputs"]["status"] == "1", done)
    check("nothing is worse", done.steps["report"]["outputs"]["compared"] == "0", done)


if __name__ == "__main__":
    main()
