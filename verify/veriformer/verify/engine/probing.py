"""Description and domains of a loaded target, made in the process that has loaded it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import WarningMessage

from veriformer.spec import suite
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.domain.probe import SECONDS, probe_operation
from veriformer.verify.engine import environment
from veriformer.verify.engine.check_run import lacking
from veriformer.verify.engine.extent import seen_of
from veriformer.verify.engine.look import Asked
from veriformer.verify.engine.probe import TargetInfo
from veriformer.verify.judging import global_state
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.recognition.places import places
from veriformer.verify.recognition.trying import try_others
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.record import json_safe
from veriformer.verify.targets.claims import ClaimsWarning
from veriformer.verify.targets.kinds import MODELS, TRAINERS
from veriformer.verify.targets.loading import target_of
from veriformer.verify.targets.source_files import PartlyLoadedWarning, name_of
from veriformer.verify.targets.target import Target

_BY_NAME = {operation.name: operation for operation in OPERATIONS}


def describe(target: Target, device: str) -> TargetInfo:
    """Return the description of a target that is loaded."""
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
    return TargetInfo(implementation, environment.environment(device), suite.record(), [], lacking=lacks)


def domains(target: Target, operations: Sequence[str], device: str, formats: Sequence[str]) -> dict[str, Any]:
    """Return the domain of each of these operations of a loaded target."""
    found = {}
    for name in operations:
        if name in _BY_NAME and target.operation(name) is not None:
            operation = _BY_NAME[name]
            if target.watch is not None:
                target.watch.begin()
            domain = probe_operation(target, operation, device=device, dtypes=formats, look=try_others)
            found[name] = domain.to_dict()
    return found


def describe_located(
    found: object, loader: str, spec: str, asked: Asked, caught: Sequence[WarningMessage], file: Path
) -> Target:
    """Write the description of the target that a word names, with the warnings so far, and return the target."""
    target = target_of(found, loader, spec, asked.recognised)
    description = describe(target, asked.device)
    told = [str(one.message) for one in caught if issubclass(one.category, ClaimsWarning | PartlyLoadedWarning)]
    write(file, vars(replace(description, warnings=told)))
    return target


def find_out(target: Target, operations: Sequence[str], asked: Asked, file: Path) -> None:
    """Write the domain of each of these operations into the file, again whenever it grows."""
    for name in operations:
        if name in _BY_NAME and target.operation(name) is not None:
            write(file, {"begun": name})

            def tell(domain: Domain, name: str = name) -> None:
                seen = seen_of(target.watch, name) if target.watch is not None else None
                write(file, {"operation": name, "domain": domain.to_dict(), "seen": seen})

            if target.watch is not None:
                target.watch.begin()
            with global_state.streams():
                domain = probe_operation(
                    target,
                    _BY_NAME[name],
                    device=asked.device,
                    dtypes=asked.formats,
                    may_kill=True,
                    seconds=SECONDS if asked.seconds is None else asked.seconds,
                    tell=tell,
                    look=try_others,
                )
            tell(domain)


def write(file: Path, line: dict[str, Any]) -> None:
    """Add a line for the parent process."""
    with file.open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(json_safe(line)) + "\n")
