"""Look at a target in a process of its own: whether it loads, what it is, where it runs.

A target that raises, hangs or ends its process while it is imported is thereby a clear message, not a broken run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import dataclass
from typing import Any

from veriformer.verify.engine import environment
from veriformer.verify.targets.loading import TargetError, load
from veriformer.verify.targets.target import Target

LOADING_S = 120.0


@dataclass(frozen=True)
class Described:
    """What is known of a target before its first row."""

    implementation: dict[str, Any]
    environment: dict[str, Any]
    suite: dict[str, Any]
    warnings: list[str]


def describe(target: Target, device: str) -> Described:
    """The same from a target that is already loaded."""
    implementation = {
        "target": target.spec,
        "name": str(getattr(target.implementation, "__name__", type(target.implementation).__name__)),
        "version": target.version,
        "claims": json.loads(json.dumps(dict(target.claims.raw), default=str)),
    }
    return Described(implementation, environment.environment(device), environment.suite(), [])


def probe(spec: str, device: str) -> Described:
    """Load the target in another process and describe it. Raises TargetError where that cannot be done."""
    command = [sys.executable, "-m", "veriformer.verify.engine.probe", spec, device]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LOADING_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise TargetError(f"target {spec!r} did not finish loading within {LOADING_S:g} s") from error
    last = done.stdout.strip().splitlines()[-1:] or [""]
    if done.returncode == 0 and last[0].startswith("{"):
        return Described(**json.loads(last[0]))
    if done.returncode == 2:
        raise TargetError(done.stderr.strip().splitlines()[-1])
    raise TargetError(f"target {spec!r} ended its process while it was loaded (exit status {done.returncode})")


def main(spec: str, device: str) -> int:
    """Print the description as the last line of standard output."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = describe(load(spec), device)
        except TargetError as error:
            print(str(error).replace("\n", " "), file=sys.stderr)
            return 2
    claims = [str(item.message) for item in caught if item.category.__name__ == "ClaimsWarning"]
    print("\n" + json.dumps({**vars(found), "warnings": claims}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
