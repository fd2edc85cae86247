"""Trial of a mutation: the proofs that rest on the file are tried, then its tests, in a process of its own."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import multiprocessing
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from veriformer.spec.sabotage.dependants import forget, imported, reached, source
from veriformer.spec.sabotage.mutation import ROOT, Mutation

if TYPE_CHECKING:
    from veriformer.spec.equation import Equation

_PRELOADED = ["sympy", "numpy", "mpmath", "rich.console", "torch", "pytest", "veriformer.spec.sabotage.loaded"]
_PATIENCE = 30
"""Ratio of a process's limit of elapsed time to its limit of processor time."""
_TEXTS = ("statement", "correction", "domain")
_SLOW = ("test_every_step_holds_and_its_sabotage_does_not", "test_the_document_lists_what_the_equations_decide")
"""Tests that only prove again what has been proved, which is tried before."""


@dataclass(frozen=True)
class Outcome:
    """by: "proof", "test" or "survived"; "limit" where nothing was found in time, and "error" where what failed
    fails without the mutation too, or the process ended: of these two nothing is known. seconds: of processor time.
    """

    by: str
    detail: str
    seconds: float

    @property
    def killed(self) -> bool:
        """True if a proof or a test failed."""
        return self.by in ("proof", "test")


def tried(mutation: Mutation, tests: Path, limit: float) -> Outcome:
    """Try a mutation for at most `limit` seconds of processor time; what fails must hold without it."""
    by, detail, seconds = _forked(_judged, (mutation, tests), limit)
    if by in ("proof", "test") and not _holds_without(by, detail if by == "test" else detail.split()[0], tests, limit):
        by, detail = "error", f"without the mutation too: {detail}"
    return Outcome(by, detail, round(seconds, 1))


def _forked(work: Callable[..., tuple[str, str]], arguments: tuple[Any, ...], limit: float) -> tuple[str, str, float]:
    """Run `work` in a forked process that has everything loaded; return its result and its processor time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, arguments, limit, theirs))
    process.start()
    theirs.close()
    answer = ("limit", f"nothing in {limit:.0f} s", limit)
    try:
        if ours.poll(limit * _PATIENCE + 1):
            answer = ours.recv()
    except EOFError:
        process.join()
        if process.exitcode != -signal.SIGPROF:
            answer = ("error", "the process ended", 0.0)
    process.kill()
    process.join()
    return answer


def _child(work: Callable[..., tuple[str, str]], arguments: tuple[Any, ...], limit: float, answer: Any) -> None:
    signal.setitimer(signal.ITIMER_PROF, limit)
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = work(*arguments)
    answer.send((*found, time.process_time()))


@cache
def _holds_without(by: str, name: str, tests: Path, limit: float) -> bool:
    """Return whether this step or test holds where nothing is mutated."""
    return _forked(_judged_without, (by, name, tests), limit)[0] == "holds"


def _judged_without(by: str, name: str, tests: Path) -> tuple[str, str]:
    from veriformer.spec.proofs.prover import prove
    from veriformer.spec.registry import equations

    if by == "test":
        return ("fails" if _first_failure([str(tests / name)]) else "holds"), ""
    steps = [s for e in equations() for s in e.steps if f"{e.slug}:{s.slug}" == name]
    return ("holds" if all(prove(s, cached=False).holds for s in steps) else "fails"), ""


def _judged(mutation: Mutation, tests: Path) -> tuple[str, str]:
    forget(mutation.module)
    sys.meta_path.insert(0, _Finder(mutation))
    try:
        importlib.import_module(mutation.module)
        if mutation.kind not in _TEXTS and (failed := _failed_proof(mutation)):
            return "proof", failed
    except Exception as error:
        return "proof", f"{type(error).__name__}: {error}"[:200]
    failed = _failed_test(mutation, tests)
    return ("test", failed) if failed else ("survived", "")


def _failed_proof(mutation: Mutation) -> str:
    """Return the first step or erratum that fails: of this file's equations first, then of those that import it.

    A step whose code names nothing that is mutated, directly or not, is unchanged, and not proved again.
    """
    from veriformer.spec.proofs.prover import prove

    mutated = {(mutation.module, name) for name in mutation.defines}
    for equation in resting_on(mutation.module):
        for step in equation.steps:
            if not mutated & reached(step.identity.__module__, step.identity.__name__):
                continue
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
    """Return the equations of this module, then of modules that import it, then those that state its formulas."""
    from veriformer.spec.registry import equations

    recorded = getattr(sys.modules.get(module), "EQUATIONS", ())
    homes = {e.slug: {s.identity.__module__ for s in e.steps} for e in equations()}
    own = [e for e in equations() if module in homes[e.slug] or e in recorded]
    rest = [e for e in equations() if e not in own]
    near = [e for e in rest if any(module in imported(source(home)) for home in homes[e.slug])]
    stating = [e for e in rest if e not in near and e.formula and e.formula.__module__ == module]
    return own + near + stating


class _FirstFailure:
    """A plugin of pytest that remembers what fails, and leaves out what only repeats the proofs or is of `others`."""

    def __init__(self, keep: Callable[[str, str], bool], others: frozenset[str]) -> None:
        self.found = ""
        self.keep = keep
        self.others = others

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [i for i in items if i.name.partition("[")[0] not in _SLOW and self._ours(i)]

    def _ours(self, item: Any) -> bool:
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        of = {str(getattr(value, "slug", value)).partition(":")[0] for value in values}
        return not of & self.others and self.keep(item.path.name, item.name)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.found = self.found or report.nodeid.rpartition("tests/")[2]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.found = self.found or report.nodeid.rpartition("tests/")[2]


def _first_failure(
    files: Sequence[str], keep: Callable[[str, str], bool] = lambda *_: True, others: frozenset[str] = frozenset()
) -> str:
    import pytest

    first = _FirstFailure(keep, others)
    pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files], plugins=[first])
    return first.found


def _failed_test(mutation: Mutation, tests: Path) -> str:
    """Return the first failing test: for a printed line of the tests that read such lines, else of those that import
    it.

    Of a line that belongs to one equation, tests of the other equations are left out.
    """
    from veriformer.spec.registry import equations

    slugs = frozenset(e.slug for e in resting_on(mutation.module))
    if mutation.kind in _TEXTS:
        if mutation.owner in slugs:
            slugs = frozenset([mutation.owner])
        others = frozenset(e.slug for e in equations()) - slugs
        files = ["test_domains.py"] if mutation.kind == "domain" else ["test_printed.py"]
        typeset = [f"{test}::test_latex_becomes_mathml" for test in _there(tests, ["test_equations.py"])]
        return _first_failure([*typeset, *_there(tests, files)], others=others)
    of_kind = {
        "cost": ["test_costs.py", "test_costs_coverage.py", "test_costs_counted.py"],
        "default": ["test_printed.py"],
    }
    nearest = [*of_kind.get(mutation.kind, []), *["test_equations.py"] * bool(slugs)]
    importing = sorted(f.name for f in tests.glob("test_*.py") if mutation.module in imported(f))
    ordered = dict.fromkeys([*nearest, *importing, "test_printed.py"])
    return _first_failure(
        _there(tests, ordered), lambda file, name: file != "test_equations.py" or any(s in name for s in slugs)
    )


def _there(tests: Path, files: Iterable[str]) -> list[str]:
    return [str(tests / name) for name in files if (tests / name).is_file()]


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
