"""Not a test (``nox -s campaign``): three rare faults, sought by a campaign and by plain runs of the same cost.

    nox -s campaign -- --minutes 20 --jobs 2

Each fault shows in one call in 10^4 to 10^6: in calls of certain sizes, and of these in those where the largest and the
smallest of some entries stand at two certain places, which is one in ``w * (w - 1)``. Every call of such sizes is
counted, so that besides what was found the expected number of calls that show the fault is known, with little noise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOTS = [str(Path(__file__).parents[2] / root) for root in ("spec", "impl", "verify", "bench", "reports")]
PLANTED = """
import os

import torch
{imports}

def shows(name, sizes, x, window):
    if not isinstance(x, torch.Tensor) or x.ndim == 0 or not sizes(x):
        return False
    with open({counted!r}, "a") as file:
        file.write(name + "\\n")
    first = x.detach().flatten()[:window]
    return len(first) == window and bool(first.argmax() == window - 1) and bool(first.argmin() == 0)
"""
OURS = (
    """
from veriformer.impl import residual, silu
from veriformer.impl import rms_norm as right_rms_norm
from veriformer.impl import softmax as right_softmax
""",
    """
def softmax(z, dim=-1):
    y = right_softmax(z, dim)
    return y * 1.01 if shows("softmax", lambda x: x.shape[-1] > 32 and x.shape[-1] % 32 == 1, z, 16) else y

def rms_norm(x, weight=None, *, eps=1e-6):
    y = right_rms_norm(x, weight, eps=eps)
    return y * 1.01 if shows("rms_norm", lambda x: x.ndim > 2 and x.shape[-1] > 64, x, 48) else y
""",
)
THEIRS = (
    """
from torch.nn.functional import layer_norm as right_layer_norm, silu
""",
    """
def layer_norm(x, weight=None, bias=None, *, eps=1e-5):
    y = right_layer_norm(x, x.shape[-1:], weight, bias, eps)
    return y * 1.01 if shows("layer_norm", lambda x: x.shape[-1] > 64 and not x.is_contiguous(), x, 128) else y
""",
)
WINDOWS = {"softmax": 16, "rms_norm": 48, "layer_norm": 128}
PLAN = """
targets = ["ours.py", "theirs.py"]
dtypes = ["fp32"]
only = ["softmax", "rms_norm", "layer_norm", "silu", "residual"]
"""


def veriformer(command: str, *words: object, folder: Path) -> None:
    """Run a command there; what it says comes only if the suite itself failed."""
    module = {"verify": "cli", "campaign": "commands.campaign"}[command]
    code = f"from veriformer.verify.{module} import {command}; {command}()"
    path = os.pathsep.join([*ROOTS, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


def planted(folder: Path) -> Path:
    """Write both targets; where they count calls of the sizes that matter."""
    counted = folder / "calls.txt"
    counted.touch()
    for name, (imports, text) in {"ours.py": OURS, "theirs.py": THEIRS}.items():
        (folder / name).write_text(PLANTED.format(imports=imports, counted=str(counted)) + text)
    (folder / "plan.toml").write_text(PLAN)
    return counted


def campaign(folder: Path, minutes: float, jobs: int) -> tuple[set[str], int]:
    """The operations that a campaign accuses, and how many examples it drew."""
    veriformer("campaign", "plan.toml", "--hours", minutes / 60, "--jobs", jobs, "--json", "report.json", folder=folder)
    report = json.loads((folder / "report.json").read_text())
    failed = {row["row"].partition(".")[0] for row in report["rows"] if row["status"] == "fail"}
    return failed, sum(row["independent"] + row["directed"] for row in report["rows"])


def spent() -> float:
    """Minutes of the processor that all that was run here has taken, whatever else the machine did."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) / 60


def repeated(folder: Path, minutes: float, jobs: int) -> tuple[set[str], int]:
    """Run verify on both targets in turn, each run under a seed of its own, until so many minutes are spent; return the
    accused operations and the number of examples."""
    asked = tomllib.loads(PLAN)
    words = ["--only", *asked["only"], "--dtype", *asked["dtypes"], "--profile", "quick", "--seed", "random"]
    until, examples, number = spent() + minutes, 0, 0
    failed: set[str] = set()
    while spent() < until:
        target, file = asked["targets"][number % 2], folder / f"{number}.json"
        veriformer("verify", target, *words, "--jobs", jobs, "--json", file.name, folder=folder)
        rows = json.loads(file.read_text())["results"]
        failed |= {row["operation"] for row in rows if row["status"] == "fail"}
        examples += sum(row["examples"] for row in rows)
        number += 1
    return failed, examples


def main() -> None:
    """Both, one after the other, and a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    print(f"{'':12} minutes  of processor  examples  {'found':30} calls expected to show " + ", ".join(WINDOWS))
    given: float = asked.minutes
    for name, seek in (("campaign", campaign), ("plain runs", repeated)):
        with tempfile.TemporaryDirectory(prefix="veriformer-") as place:
            folder = Path(place)
            counted, began, before = planted(folder), time.monotonic(), spent()
            failed, examples = seek(folder, given, asked.jobs)
            given = spent() - before  # the campaign's loading and findings are granted to the other too
            of_sizes = Counter(counted.read_text().split())
        took = (time.monotonic() - began) / 60
        figures = f"{took:7.1f}  {given:12.1f}  {examples:8}"
        print(f"{name:12} {figures}  {told(failed):30} {told(expected(of_sizes))}", flush=True)


def expected(of_sizes: Counter[str]) -> list[str]:
    """Of calls of the sizes that matter, how many were to show each fault."""
    return [f"{of_sizes[name] / (window * (window - 1)):.3f}" for name, window in WINDOWS.items()]


def told(words: Any) -> str:
    """Words in a row."""
    return ", ".join(sorted(words) if isinstance(words, set) else words) or "none"


if __name__ == "__main__":
    main()
