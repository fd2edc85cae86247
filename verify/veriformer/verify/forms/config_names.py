"""Entries of a config that constructors read, interpreted by their names and the other entries."""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from types import CodeType
from typing import Any

from torch import nn

from veriformer.verify.forms.candidate import Candidate

CONFIGS = (
    *("config", "cfg", "conf", "args", "params", "hparams", "hyperparameters"),
    *("model_args", "configuration", "opt"),
)
"""Usual names of a config among the arguments of a constructor."""


def names_read(candidate: Candidate) -> frozenset[str]:
    """Return the entries that are read of a config by the class itself and by the networks that its module knows."""
    kinds = [candidate.thing, *candidate.siblings().values()]
    networks = [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, nn.Module)]
    return frozenset(name for kind in networks for name in _read(vars(kind).get("__init__")))


def names_read_by(kind: Any) -> frozenset[str]:
    """Return the entries that are read of a config by the functions of a class."""
    return frozenset(name for function in vars(kind).values() for name in _read(function))


def _read(function: Any) -> frozenset[str]:
    """Return the attributes of a config that a function reads: what is loaded right after it, wherever it is kept."""
    return _read_by_code(function.__code__) if inspect.isfunction(function) else frozenset()


@functools.cache
def _read_by_code(code: CodeType) -> frozenset[str]:
    steps = itertools.pairwise(dis.get_instructions(code))
    loads = ("LOAD_ATTR", "LOAD_METHOD")
    return frozenset(str(b.argval) for a, b in steps if str(a.argval) in CONFIGS and b.opname in loads)
