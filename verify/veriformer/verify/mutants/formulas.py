"""Operations computed by the formulas of the spec over PyTorch tensors, and faults as edits of the formulas' source.

A formula's source is that of every function of the spec that it reaches. The edited functions are compiled into a copy
of the formula; the spec itself stays as it is.
"""

from __future__ import annotations
import __future__

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, cast

import torch
from torch import Tensor

from veriformer.spec.formula_reach import MATHEMATICS_IN, names
from veriformer.verify.judging.arithmetic import TensorArray, TorchArithmetic, dtype_of
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.mutants.combinators import Fault, replaced_by
from veriformer.verify.mutants.staged_reference.scores import widen
from veriformer.verify.operations.derived import FormulaByName
from veriformer.verify.operations.registry import home
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.impl import reference

Edit = tuple[str, str]
"""Text in the source of a formula, where it stands exactly once, and the text that takes its place."""

_VOCABULARY = tuple(f"{MATHEMATICS_IN}{package}" for package in ("arithmetic", "proofs"))
"""Packages whose functions are taken as they are: no formula stands there."""


class Rounding(TorchArithmetic):
    """Arithmetic of a call. inputs: dtype of the caller's tensors, which may be narrower than what is computed in."""

    def __init__(self, dtype: torch.dtype, inputs: torch.dtype, *, rsqrt: bool = False) -> None:
        super().__init__(dtype, rsqrt=rsqrt)
        self.inputs = inputs

    def constant(self, x: TensorArray) -> TensorArray:
        """Return the numbers without their gradient."""
        return TensorArray(self, x.tensor.detach())

    def narrow(self, x: Any) -> TensorArray:
        """Round to the dtype of the inputs."""
        return TensorArray(self, self.asarray(x).tensor.to(self.inputs).to(self.dtype))


@dataclass(frozen=True)
class FormulaKernel:
    """Operation computed by its formula, in fp32 for halves; autograd differentiates the steps.

    edits: of the formula's source. dtype: to compute in another format. rsqrt: whether 1 / √x is PyTorch's ``rsqrt``.
    """

    operation: str
    edits: tuple[Edit, ...] = ()
    dtype: torch.dtype | None = None
    rsqrt: bool = False

    def __call__(self, *arguments: Any, **options: Any) -> Tensor:
        """Return the result, in the dtype of the first floating tensor, or the default one where there is none."""
        parameters = inspect.signature(getattr(reference, self.operation)).parameters
        given = dict(zip(parameters, arguments, strict=False)) | options
        dtype = dtype_of(given)
        xp = Rounding(self.dtype or widen(torch.empty(0, dtype=dtype)).dtype, dtype, rsqrt=self.rsqrt)
        conventions = _record(self.operation).convention_kwargs(Claims())
        (result,) = edited_formula(self.operation, self.edits)(xp, xp.lift(given) | conventions)
        return result.tensor.to(dtype) if isinstance(result, TensorArray) else torch.as_tensor(result)

    def joined(self, other: FormulaKernel) -> FormulaKernel | None:
        """Return the kernel with the edits of both; None where they meet in one place."""
        both = replace(self, edits=(*self.edits, *other.edits))
        try:
            edited_formula(self.operation, both.edits)
        except ValueError:
            return None
        return both


def edited(operation: str, *edits: Edit) -> Fault:
    """Return the fault that computes the operation by its formula with these edits."""
    return replaced_by(FormulaKernel(operation, edits))


@functools.cache
def edited_formula(operation: str, edits: tuple[Edit, ...]) -> Any:
    """Return ``formula(xp, arguments)`` of an operation after edits.

    Raises ValueError for an edit whose old text does not stand exactly once in the formula's source.
    """
    first = _record(operation).formulas[0]
    formula = first.formula if isinstance(first, FormulaByName) else first
    sources = {function: inspect.getsource(function) for function in _reached(formula)}
    for old, new in edits:
        found = [function for function, text in sources.items() for _ in range(text.count(old))]
        if len(found) != 1:
            raise ValueError(
                f"edit of {operation}: expected once in its formula, got {len(found)} times: {old!r}; quote other text"
            )
        sources[found[0]] = sources[found[0]].replace(old, new)
    compiled = _compiled(formula, sources)
    return replace(first, formula=compiled) if isinstance(first, FormulaByName) else compiled


def _record(operation: str) -> OpInfo:
    record: OpInfo = vars(home(operation))[operation.upper()]
    return record


def _reached(formula: Callable[..., Any]) -> list[FunctionType]:
    """Return the functions of the spec that a formula reaches by name."""
    whole = cast("FunctionType", formula)
    found = [whole] if _is_mathematics(whole) else []
    waiting = [whole]
    while waiting:
        function = waiting.pop()
        for name in names(function.__code__):
            value = function.__globals__.get(name)
            if isinstance(value, FunctionType) and value not in found and _is_mathematics(value):
                found.append(value)
                waiting.append(value)
    return found


def _is_mathematics(function: FunctionType) -> bool:
    return function.__module__.startswith(MATHEMATICS_IN) and not function.__module__.startswith(_VOCABULARY)


def _compiled(formula: Callable[..., Any], sources: Mapping[FunctionType, str]) -> FunctionType:
    """Return the formula over copies of the functions, compiled from these sources where they are others."""
    copies: dict[FunctionType, FunctionType] = {}
    spaces: dict[int, dict[str, Any]] = {}
    whole = cast("FunctionType", formula)
    for function in dict.fromkeys((*sources, whole)):
        space = spaces.setdefault(id(function.__globals__), dict(function.__globals__))
        source = sources.get(function, inspect.getsource(function))
        same = source == inspect.getsource(function)
        copies[function] = _copy(function, space) if same else _made(function, source, space)
    for space in spaces.values():
        functions = {name: value for name, value in space.items() if isinstance(value, FunctionType)}
        space |= {name: copies[value] for name, value in functions.items() if value in copies}
    return copies[whole]


def _copy(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    copied = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


def _made(function: FunctionType, source: str, space: dict[str, Any]) -> FunctionType:
    code = compile(source, f"<edited {function.__qualname__}>", "exec", __future__.annotations.compiler_flag, True)
    defined: dict[str, Any] = {}
    exec(code, space, defined)
    made: FunctionType = defined[function.__name__]
    return made
