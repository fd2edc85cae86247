"""The arguments of ``verify``, checked before anything is imported that takes long.

Of a problem of KernelBench with its solution both are compared, and the solution is verified besides.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.spec.requirements.selection import selected
from veriformer.verify.commands.options import refuse
from veriformer.verify.engine import last_failed, waivers
from veriformer.verify.engine.arguments import ExecutionError, check_scheduler
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.look import Look
from veriformer.verify.engine.plan import Plan
from veriformer.verify.results import read
from veriformer.verify.targets import lookup
from veriformer.verify.targets.error import TargetError

RUN = "veriformer.verify.commands.verification"
"""The module that runs what is asked for. It imports PyTorch, which takes longer than all that is checked before."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Options of the command line, by name."""

    target: str
    only: tuple[str, ...]
    profile: str
    jobs: int
    seed: str
    dtype: tuple[str, ...]
    timeout: float | None
    device: str
    waiver_file: Path | None
    json_file: Path | None
    junit: Path | None
    html: Path | None
    sarif: Path | None
    annotated: bool
    strict: bool
    fail_on: str | None
    partial_accepted: bool
    every_row: bool
    exitfirst: bool
    maxfail: int
    last_failed: bool
    resume: Path | None
    shard: tuple[int, int] | None
    balance: Path | None
    scheduler: str | None
    files: tuple[Path, ...]

    def plan(self) -> Plan:
        """Return the plan of the command line. Raises WaiverError."""
        return Plan(
            target=self.target,
            profile=self.profile,
            only=self.only,
            dtypes=self.dtype,
            device=self.device,
            seed=self.seed,
            timeout_s=self.timeout,
            strict=self.strict,
            fail_on=self.fail_on or waivers.fail_on(self.waiver_file) or Plan.fail_on,
            partial=self.partial_accepted,
        )

    @property
    def most(self) -> int:
        """Number of failing rows that stops the run; 0 for no limit."""
        return 1 if self.exitfirst else self.maxfail

    def narrowed(self, say: Callable[[str], None]) -> Request:
        """Return the request for the rows that failed last time, where those are asked for and there are any.

        Raises UnknownSelectionError.
        """
        if not self.last_failed:
            return self
        chosen = {one.slug for one in selected(self.only, REQUIREMENTS)}
        before = last_failed.known(self.target, self.json_file)
        rows = [(slug, dtype) for slug, dtype in before if slug in chosen and dtype in self.dtype]
        if not rows:
            say(f"{self.target}: no row failed last time, all are run")
            return self
        say(f"{self.target}: {len(rows)} rows failed last time, these are run, and what they rest on")
        slugs, dtypes = (tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True))
        return replace(self, only=slugs, dtype=dtypes)

    def check(self) -> None:
        """Refuse what can be found unusable without the target and without PyTorch.

        Raises UnknownSelectionError, WaiverError, JournalError, TargetError or ExecutionError.
        """
        check_scheduler(self.scheduler)
        if self.files and self.scheduler is None:
            raise ExecutionError("--files: expected beside --scheduler, whose workers need them; leave --files out")
        chosen = selected(self.only, REQUIREMENTS)
        self.seconds()
        waivers.fail_on(self.waiver_file)
        if self.waiver_file is not None:
            waivers.check(self.waiver_file, [(one.slug, dtype) for one in chosen for dtype in self.dtype])
        if self.resume is not None:
            journal_of(self.resume).check(self.plan(), asked=True)
        lookup.check(self.target)

    def is_problem(self) -> bool:
        """Return whether the target is a problem with its solution, which is judged in two ways here."""
        return self.scheduler is None and self.shard is None and is_problem(self.target)

    def look(self) -> Look | None:
        """Load the target in a process of its own, and return that; None where other machines or words load it.

        Raises TargetError where it cannot be loaded.
        """
        if self.scheduler is not None or self.is_problem():
            return None
        from veriformer.verify.presentation.progress import waiting  # which imports what draws on terminals

        with waiting(f"{self.target}: loading it"):
            return Look(self.target).load(meanwhile=lambda: importlib.import_module(RUN))

    def seconds(self) -> dict[str, float]:
        """Return by row how long it took in the run that balances the parts. Raises ExecutionError."""
        try:
            return {row.key: row.seconds for row in read(self.balance).results} if self.balance else {}
        except ValueError as error:
            raise ExecutionError(f"--balance: {error}") from error


def journal_of(file: Path) -> Journal:
    """Return the journal of a run that was stopped: beside its --json file, or the file itself."""
    beside = file.with_name(file.name + ".partial")
    return Journal(beside if beside.is_file() else file)


_NEEDED = {"Model", "ModelNew", "get_inputs"}
SOLUTION = "ModelNew"


def is_problem(target: str) -> bool:
    """Return whether a file defines the reference, the solution and the inputs. It is read, and not run."""
    file = Path(target)
    if file.suffix != ".py" or not file.is_file():
        return False
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (SyntaxError, UnicodeDecodeError):
        return False
    return {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)} >= _NEEDED


def solution_of(target: str) -> str:
    """Return the word that loads the solution alone."""
    return f"{target}:{SOLUTION}"


def compare_solution(target: str, device: str) -> int:
    """Compare the solution with the reference, print the comparison and return its exit status; usage errors end it."""
    from veriformer.verify.comparison import compare  # which imports PyTorch
    from veriformer.verify.comparison.terminal import show
    from veriformer.verify.presentation.progress import console

    try:
        found = compare(f"{target}:Model", solution_of(target), inputs=target, device=device)
    except TargetError as error:
        refuse(error)
    console().print(f"{target} is a problem with its solution: ModelNew against Model")
    show(found, console())
    return found.exit_status


def join_statuses(compared: int, verified: int) -> int:
    """Return the exit status of both: 1 where either is violated, else that of the comparison unless it holds."""
    if 1 in (compared, verified):
        return 1
    return compared or (0 if verified == 3 else verified)
