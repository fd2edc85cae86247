"""Code of other kinds as functions and modules of tensors."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from veriformer.verify.forms.array_layers import layered
from veriformer.verify.forms.autograd_functions import applied
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.frameworks import over_tensors


def candidate_of(name: str, thing: Any, module: ModuleType | None) -> Candidate:
    """Return a candidate: a function over arrays of another framework as one over tensors, a class with ``apply`` as
    that function, a class of layers over arrays as one of modules."""
    return Candidate(name, layered(over_tensors(applied(thing), module), module), module)
