"""A problem with its solution: both are compared, and the solution is verified besides.

Of KernelBench they stand in one file; of flashinfer-bench the file of a solution names its definition.
"""

from __future__ import annotations

import ast
from pathlib import Path

from veriformer.verify.commands.options import refuse
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.trace_files import definition_of

_NEEDED = {"Model", "ModelNew", "get_inputs"}
SOLUTION = "ModelNew"


def is_problem(target: str) -> bool:
    """Whether a file defines the reference, the solution and the inputs, or is a solution. It is read, and not run."""
    file = Path(target)
    if definition_of(file) is not None:
        return True
    if file.suffix != ".py" or not file.is_file():
        return False
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (SyntaxError, UnicodeDecodeError):
        return False
    return {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)} >= _NEEDED


def solution_of(target: str) -> str:
    """The word that loads the solution alone."""
    return target if target.endswith(".json") else f"{target}:{SOLUTION}"


def status(target: str, device: str) -> int:
    """Compare the solution with the reference, say how it went, and give the exit status. Refuses what cannot be."""
    from veriformer.verify.comparison import compare  # which imports PyTorch
    from veriformer.verify.comparison.terminal import show
    from veriformer.verify.presentation.progress import console

    definition = definition_of(Path(target))
    try:
        if definition is None:
            said = f"{target} is a problem with its solution: ModelNew against Model"
            found = compare(f"{target}:Model", solution_of(target), inputs=target, device=device)
        else:
            said = f"{target} is a solution: it is compared with the reference of its definition, {definition.stem}"
            found = compare(str(definition), target, device=device)
    except TargetError as error:
        refuse(error)
    console().print(said)
    show(found, console())
    return found.exit_status


def joined(compared: int, verified: int) -> int:
    """The exit status of both: 1 where either is violated, else that of the comparison unless it holds."""
    if 1 in (compared, verified):
        return 1
    return compared or (0 if verified == 3 else verified)
