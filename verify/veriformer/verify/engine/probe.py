"""Look at a target in a process of its own: whether it loads, what it is, where it runs, what it supports.

A target that raises, hangs or ends its process while it is imported is thereby a clear message, not a broken run; one
that does so when it is called costs the domain of that operation and no other.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from veriformer.spec import suite
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.domain.probe import SECONDS, probe_operation
from veriformer.verify.domain.record import Domain
from veriformer.verify.engine import environment, threads
from veriformer.verify.engine.check_run import lacking
from veriformer.verify.engine.extent import seen_of, together
from veriformer.verify.engine.gate import GO, Gate
from veriformer.verify.judging import global_state, isolation
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.recognition.places import places
from veriformer.verify.recognition.trying import try_others
from veriformer.verify.results.foreign import writable
from veriformer.verify.results.record import json_safe
from veriformer.verify.targets.claims import ClaimsWarning
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.model_kinds import OPERATIONS as MODELS
from veriformer.verify.targets.source_files import PartlyLoadedWarning, name_of
from veriformer.verify.targets.target import Target
from veriformer.verify.targets.trainer_kinds import OPERATIONS as TRAINERS

LOADING_S = 240.0
_BY_NAME = {operation.name: operation for operation in OPERATIONS}


_OF_RECOGNITION = ("recognised", "by_name", "not_recognised", "unknown")


@dataclass(frozen=True)
class Described:
    """What is known of a target before its first row. domains: by operation, as in results.json. lacking: by operation
    that it does not provide, why. seen: by operation, what the calls of its probe have run of the target's code."""

    implementation: dict[str, Any]
    environment: dict[str, Any]
    suite: dict[str, Any]
    warnings: list[str]
    domains: dict[str, Any] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def recognised(self) -> dict[str, Any]:
        """What code that was not written for the contract was recognised as; nothing for other targets."""
        return {key: self.implementation[key] for key in _OF_RECOGNITION if key in self.implementation}


def describe(target: Target, device: str) -> Described:
    """The same from a target that is already loaded."""
    implementation = {
        "target": target.spec,
        "name": name_of(target.implementation) or type(target.implementation).__name__,
        "version": target.version,
        "claims": json_safe(dict(target.claims.raw)),
    }
    if target.recognised:
        implementation |= json.loads(json.dumps(dict(target.recognised)))
    reasons = {name: lacking(name, target) for name in (*POSITIONAL, *MODELS, *TRAINERS)}
    implementation["where"] = places(target, [name for name, reason in reasons.items() if reason is None])
    lacks = {name: reason for name, reason in reasons.items() if reason is not None}
    return Described(implementation, environment.environment(device), suite.record(), [], lacking=lacks)


def domains(target: Target, operations: Sequence[str], device: str, formats: Sequence[str]) -> dict[str, Any]:
    """What a target that is already loaded supports of each of these operations."""
    found = {}
    for name in operations:
        if name in _BY_NAME and target.operation(name) is not None:
            operation = _BY_NAME[name]
            if target.watch is not None:
                target.watch.begin()
            domain = probe_operation(target, operation, device=device, dtypes=formats, look=try_others)
            found[name] = domain.to_dict()
    return found


def probe(
    spec: str,
    device: str,
    operations: Sequence[str] = (),
    formats: Sequence[str] = dtypes.NAMES,
    seconds: float = SECONDS,
    *,
    jobs: int = 1,
) -> Described:
    """Load the target in other processes, describe it, and find out what it supports of each of these operations.

    seconds: what an operation that does not come back may take. jobs: over how many processes.
    Raises TargetError where the target cannot be loaded.
    """
    parts = [operations[job::jobs] for job in range(max(1, min(jobs, len(operations))))]
    gate = Gate()

    def look(part: Sequence[str]) -> Described:
        return _described(spec, device, part, formats, seconds, gate if part is parts[0] else gate.behind())

    with ThreadPoolExecutor(len(parts)) as threads:  # each of them waits for a process
        described, *others = threads.map(look, parts)
    found = {name: domain for part in (described, *others) for name, domain in part.domains.items()}
    seen = together([part.seen for part in (described, *others)])
    return replace(described, domains={name: found[name] for name in operations if name in found}, seen=seen)


def _described(
    spec: str, device: str, operations: Sequence[str], formats: Sequence[str], seconds: float, gate: Gate
) -> Described:
    """The same in one process after another, where a target ends them."""
    described, left = None, list(operations)
    while described is None or left:
        with tempfile.TemporaryDirectory(prefix="veriformer-") as folder:
            words = [spec, device, ",".join(left), ",".join(formats), str(seconds)]
            lines = _looked_at(words, Path(folder) / "found", gate)
        described = described or Described(**lines[0])
        begun = [line["begun"] for line in lines[1:] if "begun" in line]
        described.domains.update({line["operation"]: line["domain"] for line in lines[1:] if "operation" in line})
        described.seen.update({line["operation"]: line["seen"] for line in lines[1:] if line.get("seen")})
        left = left[left.index(begun[-1]) + 1 :] if begun else []
    return described


def _looked_at(words: Sequence[str], file: Path, gate: Gate) -> list[Any]:
    """What another process wrote, the description first."""
    spec = words[0]
    command = [sys.executable, "-m", "veriformer.verify.engine.probe", *words, str(file)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",  # a target may write bytes
        env={**threads.with_one(), "PYTHONIOENCODING": "utf-8"},
    ) as process:
        if not gate.passed():
            process.kill()
            raise TargetError(f"target {spec!r} was not loaded: another process could not")
        with gate.watching(file):
            try:
                _, said = process.communicate(GO, timeout=LOADING_S)
            except subprocess.TimeoutExpired as error:
                if not file.exists():
                    process.kill()
                    raise TargetError(f"target {spec!r} did not finish loading within {LOADING_S:g} s") from error
                _, said = process.communicate()
    if file.exists():
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    if process.returncode == 2:
        raise TargetError(said.strip().splitlines()[-1])
    raise TargetError(f"target {spec!r} ended its process while it was loaded (exit status {process.returncode})")


def main(spec: str, device: str, operations: str, formats: str, seconds: str, file: str) -> int:
    """Write the description into the file, and of each operation what is known, again whenever more of it is."""
    torch.set_num_threads(1)
    if sys.stdin.readline() != GO:  # no target is loaded after one that could not be
        return 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            target = load(spec)
            found = describe(target, device)
        except TargetError as error:
            print(writable(str(error)).replace("\n", " "), file=sys.stderr)
            return 2
    told = [str(item.message) for item in caught if issubclass(item.category, ClaimsWarning | PartlyLoadedWarning)]
    _write(file, vars(replace(found, warnings=told)))
    for name in operations.split(",") if operations else []:
        if name in _BY_NAME and target.operation(name) is not None:
            _write(file, {"begun": name})

            def tell(domain: Domain, name: str = name) -> None:
                seen = seen_of(target.watch, name) if target.watch is not None else None
                _write(file, {"operation": name, "domain": domain.to_dict(), "seen": seen})

            if target.watch is not None:
                target.watch.begin()
            with global_state.streams():
                domain = probe_operation(
                    target,
                    _BY_NAME[name],
                    device=device,
                    dtypes=formats.split(","),
                    may_kill=True,
                    seconds=float(seconds),
                    tell=tell,
                    look=try_others,
                )
            tell(domain)
    return 0


def _write(file: str, line: dict[str, Any]) -> None:
    with open(file, "a", encoding="utf-8") as journal:
        journal.write(json.dumps(json_safe(line)) + "\n")


if __name__ == "__main__":
    isolation.run_and_leave(lambda: main(*sys.argv[1:]))
