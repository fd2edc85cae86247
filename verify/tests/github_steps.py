"""The steps of a composite action, run as GitHub Actions runs them, as far as that needs nobody else's code.

``run`` steps are run by bash, in order, with what the files of the runner and earlier steps say; of ``uses`` steps,
caches keep folders in a folder, and others are only noted.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_CONTEXT = re.compile(r"\b(inputs|github|runner|steps)((?:\.[\w-]+)+)")


@dataclass
class Job:
    """A job that uses an action. github: its event. caches: kept from job to job. kept: the installation that is."""

    action: Path
    workspace: Path
    scratch: Path
    caches: Path
    kept: Path
    inputs: dict[str, str]
    github: dict[str, Any]
    environment: dict[str, str]
    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    used: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    log: str = ""
    failed: bool = False
    processor_s: float = 0.0

    def run(self) -> Job:
        """Run the steps."""
        document = yaml.safe_load((self.action / "action.yml").read_text(encoding="utf-8"))
        defaults = {name: entry.get("default", "") for name, entry in document["inputs"].items()}
        unknown = self.inputs.keys() - defaults.keys()
        assert not unknown, unknown
        self.inputs = {**defaults, **self.inputs}
        self.scratch.mkdir(parents=True)
        for step in document["runs"]["steps"]:
            self._step(step)
        return self

    @property
    def summary(self) -> str:
        """Return the text of the job's summary."""
        return self._file("summary").read_text(encoding="utf-8")

    def _step(self, step: dict[str, Any]) -> None:
        condition = str(step.get("if", "success()"))
        always = "always()" in condition
        if (self.failed and not always) or not self._value(condition):
            return
        record = self.steps.setdefault(step.get("id", ""), {})
        begun = time.perf_counter()
        ok = self._uses(step, record) if "uses" in step else self._bash(step, record)
        self.seconds[step["name"]] = time.perf_counter() - begun
        record["outcome"] = "success" if ok else "failure"
        self.failed |= not ok and not step.get("continue-on-error")

    def _uses(self, step: dict[str, Any], record: dict[str, Any]) -> bool:
        name, given = step["uses"].partition("@")[0], {k: self._text(str(v)) for k, v in step.get("with", {}).items()}
        self.used.append((name, given))
        if given.get("path", "").endswith("veriformer-kept"):
            Path(given["path"]).symlink_to(self.kept)
            return True
        kept = self.caches / re.sub(r"\W", "_", given.get("key", ""))
        if name == "actions/cache/restore":
            record["outputs"] = {"cache-hit": str(kept.is_dir()).lower()}
            if kept.is_dir():
                _copy(kept, self.workspace / given["path"])
        if name == "actions/cache/save":
            _copy(self.workspace / given["path"], kept)
        return True

    def _bash(self, step: dict[str, Any], record: dict[str, Any]) -> bool:
        script = self.scratch / "step.sh"
        script.write_text(step["run"], encoding="utf-8")
        own = {name: self._text(str(value)) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env={**os.environ, **self.environment, **self._runner(), **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        self.log += f"--- {step['name']} (exit status {done.returncode})\n{done.stdout}"
        lines = self._file("output").read_text(encoding="utf-8").splitlines()
        record["outputs"] = dict(line.split("=", 1) for line in lines)
        self._file("output").write_text("", encoding="utf-8")
        return done.returncode == 0

    def _runner(self) -> dict[str, str]:
        return {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_OUTPUT": str(self._file("output")),
            "GITHUB_STEP_SUMMARY": str(self._file("summary")),
            "RUNNER_TEMP": str(self.scratch),
        }

    def _file(self, name: str) -> Path:
        (self.scratch / name).touch()
        return self.scratch / name

    def _text(self, text: str) -> str:
        return _EXPRESSION.sub(lambda found: str(self._value(found[1]) or ""), text)

    def _value(self, expression: str) -> Any:
        """Return what an expression gives: contexts, comparisons, ``&&``, ``||`` and the functions of a status."""
        words = _CONTEXT.sub(lambda found: repr(self._context(found[1], found[2][1:].split("."))), expression)
        words = words.replace("&&", " and ").replace("||", " or ")
        functions = {"always": lambda: True, "success": lambda: not self.failed}
        return eval(words, {"__builtins__": {}}, functions)

    def _context(self, name: str, path: list[str]) -> Any:
        runner = {"os": "Linux", "arch": "X64", "temp": str(self.scratch)}
        found: Any = {"inputs": self.inputs, "github": self.github, "runner": runner, "steps": self.steps}[name]
        for part in path:
            found = found.get(part, "") if isinstance(found, dict) else ""
        return found


def _copy(source: Path, to: Path) -> None:
    """Copy a folder, if it is there."""
    if source.is_dir():
        to.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "--archive", "--reflink=auto", "--no-target-directory", source, to], check=True)
