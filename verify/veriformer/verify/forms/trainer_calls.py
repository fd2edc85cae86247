"""Construction and stepping of arbitrary optimizers: constructor arguments, and gradients that they take."""

from __future__ import annotations

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.form import Unfit
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.optimizer_names import LR

PARAMS = ("params", "parameters", "param_groups", "model_params", "parameter_list")
RATE = 2.0**-6
"""The learning rate where a constructor demands one."""

Shapes = tuple[tuple[int, ...], ...]
SHAPES: tuple[Shapes, ...] = (((2, 3), (4,), (), (2, 1, 3)), ((2, 3), (4,), (5, 2)), ((4, 6), (8, 4), (6, 6)))
"""Shapes of parameters that are tried in turn: of any rank, vectors and matrices, matrices alone."""


@dataclass(frozen=True)
class Stepping:
    """Demands of a step. shapes: of parameters that it takes. closure: whether it demands a closure. sparse: whether
    gradients must be sparse."""

    shapes: Shapes
    closure: bool = False
    sparse: bool = False


def factory_of(build: Callable[..., Any], parameters: Parameters, fixed: Mapping[str, Any] | None = None) -> Any:
    """Return ``optimizer(params, **options)`` from a constructor, under its own signature.

    fixed: options of a built instance. Raises Unfit where it requires an argument without a known value.
    """
    name = next((name for name in PARAMS if name in parameters), None)
    if name is None:
        raise Unfit("its constructor takes no parameters by a name that is known")
    rate = next((own for own in LR if own in parameters), None)
    given = dict(fixed or {})
    for own, p in parameters.items():
        if own == name or own in given or p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if own != rate:
            raise Unfit(f"its constructor demands {own!r}, for which no value is known: give it a default")
        given[own] = RATE

    def optimizer(params: Iterable[Any], **options: Any) -> Any:
        return build(**{name: params, **given, **options})

    rest = [p.replace(kind=p.KEYWORD_ONLY) for own, p in parameters.items() if own != name and _is_single(p)]
    first = inspect.Parameter("params", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    optimizer.__signature__ = inspect.Signature([first, *rest])  # type: ignore[attr-defined]
    return optimizer


def _is_single(p: inspect.Parameter) -> bool:
    return p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)


def find_stepping(make: Callable[..., Any], dtype: torch.dtype) -> Stepping | str:
    """Return the first way in which two steps are taken that move parameters; else what the first one raised."""
    said = ""
    for sparse in (False, True):
        for closure in (False, True):
            for shapes in SHAPES:
                found = Stepping(shapes, closure, sparse)
                error = steps(make, found, dtype)
                if not error:
                    return found
                said = said or error
    return said


def steps(
    make: Callable[..., Any],
    way: Stepping,
    dtype: torch.dtype,
    options: Mapping[str, Any] | None = None,
    *,
    seeded: bool = True,
) -> str:
    """Return why two steps with such options do not move a parameter to finite numbers; empty where they do.

    seeded: restore PyTorch's generator afterwards.
    """
    params = [torch.linspace(0.5, 1.5, _size(s), dtype=dtype).reshape(s).requires_grad_() for s in way.shapes]
    before = [p.detach().clone() for p in params]

    def compute() -> Tensor:
        for p in params:
            g = torch.linspace(-1.0, 0.75, p.numel(), dtype=dtype).reshape(p.shape)
            p.grad = g.to_sparse() if way.sparse and g.ndim else g
        return torch.zeros((), dtype=dtype)

    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            torch.random.fork_rng(enabled=seeded),
        ):
            warnings.simplefilter("ignore")
            trainer = make(params, **(options or {}))
            if callable(getattr(trainer, "train", None)):
                trainer.train()
            for _ in range(2):
                if way.closure:
                    trainer.step(compute)
                else:
                    compute()
                    trainer.step()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    if not all(bool(p.isfinite().all()) for p in params):
        return "two steps make a parameter that is not finite"
    moved = any(not torch.equal(p.detach(), old) for p, old in zip(params, before, strict=True))
    return "" if moved else "two steps move no parameter"


def _size(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())
