"""Adapters that compute nothing: zeros, a constant, NaN, their own first argument, garbage.

Each provides every operation with the shape, the dtype and the gradient of the right result, as far as its kind has
them. A suite that lets one of them through a check of a formula has checked nothing. Whole models that compute nothing
are right ones whose logits are exchanged for something else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import wraps
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.spec.requirement import Kind
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.judging.check import Check
from veriformer.verify.mutants.combinators import Fault, Operation, instead
from veriformer.verify.mutants.records import Sabotage
from veriformer.verify.mutants.staged_reference.model import Decoder, EncoderDecoder, Model, Shape
from veriformer.verify.targets.impl import reference

_Exchange = Callable[[Tensor, Tensor], Any]

_KEPT_BY_GARBAGE = {
    "causal_lm.reach": "what is drawn anew changes with every token",
    "seq2seq_lm.reach": "what is drawn anew changes with every token",
    "seq2seq_lm.source_reach": "what is drawn anew changes with every token",
    "causal_lm.checkpointing": "both gradients are drawn from one seed",
    "masked_lm.checkpointing": "both gradients are drawn from one seed",
    "seq2seq_lm.checkpointing": "both gradients are drawn from one seed",
}
"""Requirements that random numbers keep, each with the reason."""

Fill = Callable[[Tensor], Tensor]

CLAIMED_KINDS = (Kind.EQUATION, Kind.GRADIENT, Kind.LAW, Kind.NUMERICS)
"""Kinds of checks that an adapter claims, and so must fail. It claims no contract checks (purity, layout, shapes),
refusals or conventions: zeros of the right shape are pure, indifferent to layout and bound by no convention."""

OF_LAWS_ALONE = ("optimizer", "lr_scheduler")
"""Operations that no adapter provides, without a formula: constant parameters keep most of their laws."""

_WITHOUT_TEXTS = {
    f"causal_lm.{name}": "the models of the adapters have no generate" for name in ("greedy", "crop", "sampled")
}

_RIGHT = reference
"""Source of the adapters' shapes, dtypes and gradients."""

_OPERATIONS = tuple(name for name in vars(_RIGHT) if name in POSITIONAL)


def _models(exchange: _Exchange | None) -> dict[str, Callable[[], nn.Module]]:
    """Return a factory of every kind. exchange: maps logits and their sources to other logits; None returns the ids."""
    kinds: dict[str, tuple[type[Model], Shape]] = {
        "causal_lm": (Decoder, Shape()),
        "masked_lm": (Decoder, Shape(causal=False)),
        "seq2seq_lm": (EncoderDecoder, Shape(cross=True)),
    }
    return {name: _factory(kind, shape, exchange) for name, (kind, shape) in kinds.items()}


def _factory(kind: type[Model], shape: Shape, exchange: _Exchange | None) -> Callable[[], nn.Module]:
    class Spoiled(kind):  # type: ignore[misc, valid-type]
        def logits(self, h: Tensor) -> Any:
            right = super().logits(h)
            return right if exchange is None else exchange(right, h)

        @wraps(kind.forward)
        def forward(self, ids: Tensor, *arguments: Any, **options: Any) -> Any:
            output = super().forward(ids, *arguments, **options)
            if exchange is None:
                output.logits = options.get("decoder_ids", ids)
            return output

    return lambda: Spoiled(shape)


class _Replaced(torch.autograd.Function):
    """Something in the place of a result, and of the gradient for every tensor that it was computed from."""

    @staticmethod
    def forward(ctx: Any, fill: Fill, right: Tensor, *sources: Tensor) -> Tensor:
        ctx.fill = fill
        ctx.save_for_backward(*sources)
        return fill(right)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *[ctx.fill(x) if x.is_floating_point() else None for x in ctx.saved_tensors]


def _fill_with(fill: Fill) -> Fault:
    def replaced(operation: Operation, *arguments: Any, **options: Any) -> Any:
        with torch.no_grad():
            right = operation(*(x.right if isinstance(x, _Forgetful) else x for x in arguments), **options)
        given = (*arguments, *options.values())
        held = [x for mapping in given if isinstance(mapping, Mapping) for x in mapping.values()]
        sources = [x for x in (*given, *held) if isinstance(x, Tensor)]
        if isinstance(right, Tensor):
            return _Replaced.apply(fill, right, *sources)  # type: ignore[no-untyped-call]
        return _fill_result(right, fill)

    return instead(replaced)


def _fill_result(right: Any, fill: Fill) -> Any:
    """Fill results that are no tensors: lists of them, floats, texts, optimizers and caches."""
    if isinstance(right, list | tuple):
        return type(right)(_fill_result(x, fill) for x in right)
    if isinstance(right, float):
        return fill(torch.tensor(right, dtype=torch.float64)).item()
    if isinstance(right, bytes | str):
        codes = fill(torch.zeros(len(right), dtype=torch.float64)).nan_to_num(nan=2.0).mul(100).long() % 128
        return bytes(codes.tolist()) if isinstance(right, bytes) else "".join(map(chr, codes.tolist()))
    if isinstance(right, Tensor):
        return fill(right)
    return _Untrained(right, fill) if hasattr(right, "step") else _Forgetful(right, fill)


class _Forgetful:
    """A cache that shows something else than it holds."""

    def __init__(self, right: Any, fill: Fill) -> None:
        self.right = right
        self.fill = fill

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def update(self, *rows: Tensor) -> tuple[Tensor, Tensor]:
        k, v = self.right.update(*rows)
        return self.fill(k), self.fill(v)


class _Untrained:
    """An optimizer that fills its parameters in the place of a step."""

    def __init__(self, right: Any, fill: Fill) -> None:
        self.right = right
        self.fill = fill

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    @torch.no_grad()
    def step(self) -> None:
        for group in self.right.param_groups:
            for p in group["params"]:
                p.copy_(self.fill(p))


def _everywhere(fill: Fill) -> Callable[[], object]:
    filled = {name: _fill_with(fill)(getattr(_RIGHT, name)) for name in _OPERATIONS}
    models = _models(lambda right, h: _Replaced.apply(fill, right, h))  # type: ignore[no-untyped-call]
    return lambda: SimpleNamespace(**filled, **models)


def _nan(x: Tensor) -> Tensor:
    return torch.full_like(x, math.nan, dtype=x.dtype if x.is_floating_point() else torch.float32)


def _garbage(x: Tensor) -> Tensor:
    return (
        torch.rand(x.shape, dtype=torch.float64).sub(0.5 if x.is_floating_point() else 0).round(decimals=3).to(x.dtype)
    )


def _identity() -> object:
    return SimpleNamespace(**dict.fromkeys(_OPERATIONS, _first_argument), **_models(None))


def _first_argument(first: Any, *arguments: Any, **options: Any) -> Any:
    return first


def _sabotage(
    identifier: str, title: str, make: Callable[[], object], exempt: dict[str, str] | None = None
) -> Sabotage:
    return Sabotage(identifier=identifier, title=title, make=make, exempt=_WITHOUT_TEXTS | (exempt or {}))


SABOTAGES: tuple[Sabotage, ...] = (
    _sabotage("zeros", "zeros everywhere", _everywhere(torch.zeros_like)),
    _sabotage("constant", "ones everywhere", _everywhere(torch.ones_like)),
    _sabotage("nan", "NaN everywhere", _everywhere(_nan)),
    _sabotage("identity", "its first argument", _identity),
    _sabotage(
        "garbage",
        "numbers drawn at random",
        _everywhere(_garbage),
        dict(_KEPT_BY_GARBAGE),
    ),
)


def must_fail(sabotage: Sabotage, check: Check) -> bool:
    """Return whether an adapter must fail this check: its kind is claimed, and no reason exempts it."""
    claimed = check.requirement.kind in CLAIMED_KINDS and check.operation not in OF_LAWS_ALONE
    return claimed and check.requirement.slug not in sabotage.exempt
