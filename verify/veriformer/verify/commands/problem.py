"""A problem of KernelBench with its solution: both are compared, and the solution is verified besides."""

from __future__ import annotations

import ast
from pathlib import Path

from veriformer.verify.commands.options import refuse
from veriformer.verify.targets.error import TargetError

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


def status(target: str, device: str) -> int:
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


def joined(compared: int, verified: int) -> int:
    """Return the exit status of both: 1 where either is violated, else that of the comparison unless it holds."""
    if 1 in (compared, verified):
        return 1
    return compared or (0 if verified == 3 else verified)
