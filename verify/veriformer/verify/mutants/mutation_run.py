"""The kill matrix over worker processes: mutants, variants and sabotage adapters, one item of pytest-xdist each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from veriformer.verify.engine.items import Collects, InterruptMixin
from veriformer.verify.engine.run import run_pytest
from veriformer.verify.mutants import MUTANTS, SABOTAGES, VARIANTS, Mutant
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.mutants.generic import generic_mutants, named
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, KillMatrix, Member, cells, family
from veriformer.verify.mutants.shrinking import with_smallest

_CELLS = pytest.StashKey[list[Cell]]()
_MEMBERS: tuple[Member, ...] = (*MUTANTS, *VARIANTS, *SABOTAGES)
EVERYONE = {f"{family(member)}:{member.identifier}": member for member in _MEMBERS}
"""Every member of the matrix by its name, such as ``mutant:GQA-01``, but for the generic ones."""


def generic() -> dict[str, Member]:
    """The generic mutants by their names."""
    return {f"generic:{mutant.identifier}": mutant for mutant in generic_mutants()}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The file that says whom to run."""
    parser.addoption("--veriformer-members", help="file with the names of the members and the seed")


def pytest_configure(config: pytest.Config) -> None:
    """In a worker process: one thread, and the members to run."""
    if hasattr(config, "workerinput"):
        torch.set_num_threads(1)
        wanted = json.loads(Path(config.option.veriformer_members).read_text())
        config.pluginmanager.register(_Worker(**wanted), "veriformer-members")


class _Collects(Collects[str]):
    def __init__(self, names: Sequence[str], seed: str, shrink: bool = False) -> None:
        self.names = names
        self.seed = seed
        self.shrink = shrink

    def items(self) -> Iterable[tuple[str, str]]:
        """The members by number, for their names have characters that the identifiers of items may not have."""
        return [(str(i), name) for i, name in enumerate(self.names)]


def run_member(name: str, seed: str, *, shrink: bool) -> list[Cell]:
    """The cells of one member by its name."""
    member = EVERYONE.get(name) or named(name.partition(":")[2])
    found = cells(member, MATRIX_PROFILE, seed)
    return with_smallest(found, seed) if shrink and isinstance(member, Mutant) else found


class _Worker(_Collects):
    def caller(self, name: str) -> Callable[[pytest.Item], None]:
        """Run one member and leave its cells for the report."""

        def call(item: pytest.Item) -> None:
            item.stash[_CELLS] = run_member(name, self.seed, shrink=self.shrink)

        return call

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the cells along with the report, as text, since it crosses processes."""
        report = yield
        if report.when == "call":
            text = json.dumps([asdict(cell) for cell in item.stash.get(_CELLS, [])])
            report.veriformer = text  # type: ignore[attr-defined]  # pytest-xdist carries added attributes
        return report


class _Controller(_Collects, InterruptMixin):
    def __init__(self, names: Sequence[str], seed: str, tell: Callable[[str, list[Cell]], None]) -> None:
        super().__init__(names, seed)
        self.tell = tell
        self.cells: dict[str, list[Cell]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the cells of a member that has been run."""
        if report.when == "call" and hasattr(report, "veriformer"):
            name = self.names[int(report.nodeid.partition("[")[2].removesuffix("]"))]
            self.cells[name] = [Cell(**cell) for cell in json.loads(report.veriformer)]
            self.tell(name, self.cells[name])


def kill_matrix(
    names: Sequence[str], *, jobs: int, seed: str, tell: Callable[[str, list[Cell]], None], shrink: bool = False
) -> tuple[KillMatrix, bool]:
    """Run members by name over worker processes. Returns the matrix and whether the run was interrupted.

    shrink: seek the smallest counterexample of each killed mutant, and run its script.
    """
    side = _Controller(names, seed, tell)
    with tempfile.TemporaryDirectory(prefix="veriformer-") as folder:
        wanted = Path(folder) / "members.json"
        wanted.write_text(json.dumps({"names": list(names), "seed": seed, "shrink": shrink}))
        options = ["-pxdist.plugin", f"-p{__name__}", f"--numprocesses={jobs}", f"--veriformer-members={wanted}"]
        run_pytest(options, side, Path(folder))
    found = [cell for name in names for cell in side.cells.get(name, [])]
    return KillMatrix(MATRIX_PROFILE, seed, tuple(found)), side.interrupted
