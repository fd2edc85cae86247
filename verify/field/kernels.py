"""Comparison of public generated kernels with their problems: python verify/field/kernels.py FOLDER [NAME...]

FOLDER holds a clone by the name below, at the commit below; nothing of it is copied. Each solution in Triton is
compared with its problem on the CPU, under Triton's interpreter, as `veriformer compare PROBLEM SOLUTION` does. Two
things are changed for that, in copies that are thrown away: what demands a CUDA device is left out of the solution, and
the larger whole numbers of the problem's file are divided by one power of two, so that interpreted calls end in
seconds. A NAME is one of MODELS, or MODEL/PROBLEM. Prints a line for each, with tabs between: file, exit status,
seconds by the clock, seconds of the processor, cases, findings (weight, what, when).
"""

from __future__ import annotations

import argparse
import ast
import itertools
import math
import os
import runpy
import tempfile
from pathlib import Path

import psutil
import torch
from torch.utils._pytree import tree_leaves

from veriformer.verify.comparison import SECONDS, Comparison
from veriformer.verify.comparison.record import conclude
from veriformer.verify.comparison.run import observe
from veriformer.verify.comparison.session import Session
from veriformer.verify.targets.error import TargetError

NAME, REPOSITORY = "hzeng2000+KernelBench", "hzeng2000/KernelBench@833e16d179fa"
MODELS = ("Kimi-K2-0905", "grok-code-fast-1")
PROBLEMS = tuple(range(1, 101))
LARGEST, SIZES = 2**12, (16, 32, 64)
"""Numbers among the arguments of a call; and from which number on one is a size, the first with which it runs."""


class _Smaller(ast.NodeTransformer):
    """Whole numbers of the module itself, not of its classes and functions, divided."""

    def __init__(self, divisor: int, least: int) -> None:
        self.divisor, self.least = divisor, least

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and node.value >= self.least:
            return ast.Constant(max(2, node.value // self.divisor))
        return node


class _Anywhere(ast.NodeTransformer):
    """Without what demands a CUDA device: assertions, moves to it, and its name."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Pass() if "is_cuda" in ast.unparse(node) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        moved = isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args
        return node.func.value if moved and isinstance(node.func, ast.Attribute) else node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("cpu") if node.value == "cuda" else node


def rewrite(source: str, change: ast.NodeTransformer) -> str:
    """Return the source text after a change of its syntax tree."""
    return ast.unparse(ast.fix_missing_locations(change.visit(ast.parse(source))))


def _numbers(problem: Path) -> float:
    """Return how many numbers the arguments of a problem hold; infinity where the problem does not run."""
    try:
        with torch.device("meta"):
            found = runpy.run_path(str(problem))
            inputs = found["get_inputs"]()
            found["Model"](*found["get_init_inputs"]())(*inputs)
            return sum(x.numel() for x in tree_leaves(inputs) if isinstance(x, torch.Tensor))
    except Exception:  # sizes that do not fit each other
        return math.inf


def shrink_sizes(problem: Path, folder: Path) -> Path:
    """Copy a problem, its sizes divided by the least power of two that leaves few numbers, else with the fewest."""
    copy = folder / problem.name
    source = problem.read_text(encoding="utf-8")
    sizes: dict[float, str] = {}
    for power, least in itertools.product(range(14), SIZES):
        text = rewrite(source, _Smaller(2**power, least))
        copy.write_text(text, encoding="utf-8")
        sizes.setdefault(_numbers(copy), text)
        if min(sizes) <= LARGEST:
            break
    copy.write_text(sizes[min(sizes)], encoding="utf-8")
    return copy


def compare(session: Session, problem: Path, solution: Path, seconds: float) -> Comparison:
    """Return the comparison of a problem and a solution, within a limit in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reference, candidate = shrink_sizes(problem, folder), folder / "solution.py"
        candidate.write_text(rewrite(solution.read_text(encoding="utf-8"), _Anywhere()), encoding="utf-8")
        return conclude(observe(session, str(reference), str(candidate), None, seconds))


def format_findings(found: Comparison) -> str:
    """Return the findings on one line, or the reason why nothing can be concluded."""
    findings = [f"{one.weight.value}: {one.what}" + (f" ({one.when})" if one.when else "") for one in found.findings]
    return " | ".join([*findings, *([found.why] if found.why else [])]) or "-"


def main() -> None:
    """Compare each solution that is named, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("wanted", nargs="*", metavar="MODEL[/PROBLEM]")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="as compare's --timeout")
    asked = parser.parse_intermixed_args()
    os.environ["TRITON_INTERPRET"] = "1"
    root = asked.folder / NAME
    names = [f"{model}/{number}" for model in MODELS for number in PROBLEMS]
    wanted = [name for one in asked.wanted or MODELS for name in names if one in (name, name.partition("/")[0])]
    with Session("cpu") as session:
        server = psutil.Process(session.server.pid)
        for name in wanted:
            model, _, number = name.partition("/")
            (problem,) = (root / "KernelBench/level2").glob(f"{number}_*.py")
            file = f"runs/level_2_backend_triton_model_{model}/level_2_problem_{number}_sample_0_kernel.py"
            if not (root / file).is_file():
                continue
            before = server.cpu_times()
            try:
                found = compare(session, problem, root / file, asked.seconds)
                row = (str(found.exit_status), f"{found.seconds:.0f}", str(found.cases), format_findings(found))
            except TargetError as error:
                row = ("2", "", "", str(error))
            now = server.cpu_times()
            spent = now.children_user + now.children_system - before.children_user - before.children_system
            print(file, row[0], row[1], f"{spent:.0f}", *row[2:], sep="\t", flush=True)


if __name__ == "__main__":
    main()
