"""Which entries of a config the constructors of a module read: what one name means is told by those beside it."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from typing import Any

from torch import nn

from veriformer.verify.forms.candidate import Candidate

CONFIGS = (
    *("config", "cfg", "conf", "args", "params", "hparams", "hyperparameters"),
    *("model_args", "configuration", "opt"),
)
"""Usual names of a config among the arguments of a constructor."""


def names_read(candidate: Candidate) -> frozenset[str]:
    """The entries that are read of a config by the class itself and by the networks that its module knows."""
    kinds = [candidate.thing, *candidate.siblings().values()]
    networks = [kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, nn.Module)]
    return frozenset(name for kind in networks for name in _read(vars(kind).get("__init__")))


def names_read_by(kind: Any) -> frozenset[str]:
    """The entries that are read of a config by the functions of a class."""
    return frozenset(name for function in vars(kind).values() for name in _read(function))


def _read(function: Any) -> Iterator[str]:
    """Attributes of a config that a function reads: what is loaded right after it, wherever it is kept."""
    if not inspect.isfunction(function):
        return
    last = ""
    for step in dis.get_instructions(function):
        if last in CONFIGS and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            yield str(step.argval)
        last = str(step.argval)
