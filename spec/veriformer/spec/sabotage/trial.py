"""What becomes of one mutation: the proofs that rest on the file are tried, then its tests, in a process of its own."""

from __future__ import annotations

import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from veriformer.spec.sabotage.mutation import ROOT, Mutation

if TYPE_CHECKING:
    from veriformer.spec.equation import Equation

_PRELOADED = ["sympy", "numpy", "mpmath", "rich.console"]
_TEXTS = ("statement", "correction", "domain")
_SLOW = ("test_every_step_holds_and_its_sabotage_does_not", "test_the_document_lists_what_the_equations_decide")
"""Tests that only prove again what has been proved, which is tried before."""


@dataclass(frozen=True)
class Outcome:
    """by: "proof", "test" or "survived"; "limit" where nothing was found in time, and "error" where what turned red is
    red without the mutation too, or the process ended: of these two nothing is known.
    """

    by: str
    detail: str
    seconds: float

    @property
    def killed(self) -> bool:
        """Whether something turned red."""
        return self.by in ("proof", "test")


def tried(mutation: Mutation, tests: Path, limit: float) -> Outcome:
    """Try a mutation for at most `limit` seconds; what turns red must be green without it."""
    start = time.monotonic()
    by, detail = _forked(_judged, (mutation, tests), limit)
    if by in ("proof", "test") and _forked(_red_without, (mutation.module, by, detail, tests), limit)[0] != "green":
        by, detail = "error", f"without the mutation too: {detail}"
    return Outcome(by, detail, round(time.monotonic() - start, 1))


def _forked(work: Callable[..., tuple[str, str]], arguments: tuple[Any, ...], limit: float) -> tuple[str, str]:
    """What `work` returns, in a forked process that has the libraries loaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, arguments, theirs))
    process.start()
    theirs.close()
    by, detail = "limit", f"nothing in {limit:.0f} s"
    try:
        if ours.poll(limit):
            by, detail = ours.recv()
    except EOFError:
        by, detail = "error", "the process ended"
    process.kill()
    process.join()
    return by, detail


def _child(work: Callable[..., tuple[str, str]], arguments: tuple[Any, ...], answer: Any) -> None:
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        answer.send(work(*arguments))


def _red_without(module: str, by: str, detail: str, tests: Path) -> tuple[str, str]:
    """Whether the same proof or test is red where nothing is mutated."""
    from veriformer.spec.proofs.prover import prove

    if by == "test":
        return ("red" if _first_red([str(tests / detail)]) else "green"), ""
    name = detail.partition(" ")[0]
    steps = [s for e in resting_on(module) for s in e.steps if f"{e.slug}:{s.slug}" == name]
    return ("green" if all(prove(s, cached=False).holds for s in steps) else "red"), ""


def _judged(mutation: Mutation, tests: Path) -> tuple[str, str]:
    sys.meta_path.insert(0, _Finder(mutation))
    try:
        importlib.import_module(mutation.module)
        if mutation.kind not in _TEXTS and (red := _red_proof(mutation)):
            return "proof", red
    except Exception as error:
        return "proof", f"{type(error).__name__}: {error}"[:200]
    red = _red_test(mutation, tests)
    return ("test", red) if red else ("survived", "")


def _red_proof(mutation: Mutation) -> str:
    """The first step or erratum that does not hold: of this file's equations first, then of those that import it."""
    from veriformer.spec.proofs.prover import prove

    for equation in resting_on(mutation.module):
        for step in equation.steps:
            try:
                verdict = prove(step, cached=False)
            except Exception as error:
                return f"{equation.slug}:{step.slug} raises {type(error).__name__}"
            if not verdict.holds:
                return f"{equation.slug}:{step.slug} {verdict.status}"
        for erratum in equation.errata:
            if not erratum.counterexample().refutes:
                return f"{equation.slug}:{erratum.slug} no longer refutes"
    return ""


def resting_on(module: str) -> list[Equation]:
    """The equations of this module, then those whose module imports it, then those that state its formulas."""
    from veriformer.spec.registry import equations

    homes = {e.slug: e.steps[0].identity.__module__ for e in equations()}
    own = [e for e in equations() if homes[e.slug] == module]
    near = [e for e in equations() if e not in own and module in imported(_file(homes[e.slug]))]
    stating = [e for e in equations() if e.formula and e.formula.__module__ == module and e not in own + near]
    return own + near + stating


def _file(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")[2:]).with_suffix(".py")


@cache
def imported(file: Path) -> frozenset[str]:
    """The modules of the specification that a file imports itself."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("veriformer.spec"):
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


class _FirstRed:
    """A plugin of pytest that remembers what fails, and leaves out what only repeats the proofs."""

    def __init__(self) -> None:
        self.red = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.name.partition("[")[0] not in _SLOW]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.red = self.red or report.nodeid.rpartition("tests/")[2]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.red = self.red or report.nodeid.rpartition("tests/")[2]


def _red_test(mutation: Mutation, tests: Path) -> str:
    return next((red for words in _tests(mutation, tests) if (red := _first_red(words))), "")


def _first_red(words: Sequence[str]) -> str:
    import pytest

    first = _FirstRed()
    pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words], plugins=[first])
    return first.red


def _tests(mutation: Mutation, tests: Path) -> Iterable[Sequence[str]]:
    """What holds the mutated text: tests of records for printed lines, tests that import the module for all else."""
    slugs = [e.slug for e in resting_on(mutation.module)]
    if mutation.kind in _TEXTS:
        slug = mutation.owner if mutation.owner in slugs else slugs[0]
        yield [str(tests / "test_equations.py"), "-k", f"latex and {slug}"]
        files = ["test_printed.py", "test_domains.py", "test_records.py"]
        files += ["test_source_coverage.py", "test_source_quotations.py"]
    else:
        if slugs:
            yield [str(tests / "test_equations.py"), "-k", " or ".join(slugs)]
        files = sorted(f.name for f in tests.glob("test_*.py") if mutation.module in imported(f))
        if mutation.kind == "cost":
            files = sorted({*files, "test_costs.py", "test_costs_coverage.py", "test_costs_counted.py"})
        files.append("test_printed.py")
    yield [str(tests / name) for name in files if (tests / name).is_file()]


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads one module from the mutated text, never from compiled files."""

    def __init__(self, mutation: Mutation, path: str) -> None:
        super().__init__(mutation.module, path)
        self.text = mutation.applied()

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutation: Mutation) -> None:
        self.mutation = mutation

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the mutated module; every other is none of ours."""
        if fullname != self.mutation.module:
            return None
        file = str(ROOT / self.mutation.file)
        return importlib.util.spec_from_file_location(fullname, file, loader=_Loader(self.mutation, file))
