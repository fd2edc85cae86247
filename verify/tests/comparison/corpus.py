"""Pairs of implementations: a problem, and code that solves it rightly, coarsely, or only in appearance."""

from __future__ import annotations

import tomllib
from pathlib import Path
from textwrap import indent

from tests.edited_files import edited, write_text
from veriformer.verify.comparison import Comparison, compare

PAIRS = Path(__file__).parent / "pairs"
"""``problems`` holds references, ``candidates.toml`` what is compared with them, right, wrong and coarse."""

CANDIDATES = tomllib.loads((PAIRS / "candidates.toml").read_text(encoding="utf-8"))

IMPORTS = """\
import functools, gc, math, os, sys, threading, time
import torch
import torch.nn.functional as F
import torch.testing
from torch import nn

"""


def candidates(kind: str) -> list[str]:
    """Return the names of all candidates of one kind: PROBLEM__NAME."""
    return [f"{problem}__{name}" for problem, kinds in CANDIDATES.items() for name in kinds.get(kind, ())]


def problem_file(name: str) -> Path:
    """Return the path of a problem."""
    return PAIRS / "problems" / f"{name}.py"


def candidate_file(kind: str, name: str) -> Path:
    """Return the path of a candidate, which is written once in a process."""
    return write_text(name, kind, lambda: _text(kind, name))


def _text(kind: str, name: str) -> str:
    problem, _, word = name.partition("__")
    row = CANDIDATES[problem][kind][word]
    text = edited(problem_file(problem), [] if isinstance(row, str) else row).partition("\n\ndef get_inputs")[0]
    if isinstance(row, str) and "class " in row:
        text = row
    elif isinstance(row, str):
        before, _, function = text.rpartition("def ")
        signature, margin = function.splitlines()[0], len(before) - len(before.rstrip(" ")) + 4
        text = f"{before}def {signature}\n{indent(row, margin * ' ')}"
    return IMPORTS + text.replace("class Model(", "class ModelNew(") + "\n"


def compared(kind: str, name: str) -> Comparison:
    """Compare a candidate with its problem."""
    return compare(problem_file(name.partition("__")[0]), candidate_file(kind, name))
