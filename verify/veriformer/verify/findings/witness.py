"""Witnesses of practice: PyTorch's own operator, and the formula step by step, on the calls that fail.

Whatever one of them does likewise, in the same dtype, is a weakness of the format or of practice, and no fault of the
code. The formula is evaluated over tensors, each step rounded to the dtype; autograd differentiates the steps.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from veriformer.verify.contract import dtypes
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.findings.calls import APART, RECORDS
from veriformer.verify.findings.causes import Cause
from veriformer.verify.findings.compositions import compositions
from veriformer.verify.findings.evidence import Example
from veriformer.verify.findings.survey import again
from veriformer.verify.judging.arithmetic import TorchArithmetic, dtype_of
from veriformer.verify.judging.op_info import Formula, OpInfo
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.target import Target

STEPWISE = "the formula evaluated step by step in that dtype"

_OPERATORS = {
    **{name: f"torch.{name}" for name in ("softmax", "logsumexp", "dropout")},
    **{
        name: f"torch.nn.functional.{name}"
        for name in ("cross_entropy", "layer_norm", "rms_norm", "gelu", "silu", "mse_loss")
    },
    "attention": "torch.nn.functional.scaled_dot_product_attention",
    "multi_head_attention": "torch.nn.functional.multi_head_attention_forward",
    "transformer_block": "torch.nn.TransformerEncoderLayer",
    "token_embedding": "torch.nn.functional.embedding",
    "lm_head": "torch.nn.functional.linear",
    "clip_grad_norm": "torch.nn.utils.clip_grad_norm_",
    "gradient_descent": "torch.optim.SGD",
    "sgd_momentum": "torch.optim.SGD",
    "adam": "torch.optim.Adam",
    "adamw": "torch.optim.AdamW",
}
"""By operation, PyTorch's own operator; others are put together from several."""

_BY_PRACTICE = frozenset(("top_k_filter.purity", "top_p_filter.purity"))
"""Requirements that published code breaks in every call: what it gives is right."""

_CALLS = 3
"""Calls of a row that are made again, the smallest ones."""

Operation = Callable[..., Any]


def is_plain(example: Example) -> bool:
    """Return whether an example fails on ordinary calls in a dtype whose format explains nothing."""
    practised = example.row.check.requirement.slug in _BY_PRACTICE
    return example.ordinary and example.row.dtype not in dtypes.HALVES and not practised


def shared_rows(cause: Cause, target: Target) -> dict[str, str]:
    """Return the rows of a cause in which a witness does likewise in every call made again, with its name by row key.

    Nothing where a call fails that is ordinary, in a full format.
    """
    if any(map(is_plain, cause.explained)):
        return {}
    of_halves, of_full = (list(_witnesses(cause.condition.operation, target, half=half)) for half in (True, False))
    of_rows: dict[str, list[Example]] = {}
    for example in sorted(cause.explained, key=lambda one: one.size):
        of_rows.setdefault(example.row.key, []).append(example)
    found = _with_the_most(
        {
            key: _shared(
                [_witness_of(x, of_halves if x.row.dtype in dtypes.HALVES else of_full) for x in some[:_CALLS]]
            )
            for key, some in of_rows.items()
        },
        {key: some[0].row.dtype for key, some in of_rows.items()},
    )
    return {key: name for key, name in found.items() if name is not None}


def _with_the_most(found: Mapping[str, str | None], formats: Mapping[str, str]) -> dict[str, str | None]:
    """Return the witnesses of rows; where half of a cause's rows in a half format, or more, have one, for all of these.

    By how much a call is off there is a matter of luck.
    """
    most: dict[str, str] = {}
    for dtype in dtypes.HALVES:
        own = [name for key, name in found.items() if formats[key] == dtype]
        told = [name for name in own if name is not None]
        if told and 2 * len(told) >= len(own):
            most[dtype] = max(told, key=told.count)
    return {key: name or most.get(formats[key]) for key, name in found.items()}


def _shared(names: Sequence[str | None]) -> str | None:
    """Return the commonest name; None where some call has none."""
    return None if None in names else max(names, key=names.count)


def _witness_of(example: Example, witnesses: Sequence[tuple[str, Target]]) -> str | None:
    for name, witness in witnesses:
        found = again(example, witness)
        if found is not None and _likewise(example, found):
            return name
    return None


def _likewise(example: Example, other: Example) -> bool:
    """Return whether another implementation fails in the same kind and is about as far off.

    An entry that is dropped and is to stay is as far off as one that stays and is to be dropped, and is not the same.
    """
    one, two = example.signature, other.signature
    if one is None or two is None or one.drops != two.drops:
        return False
    return (one.lost and two.lost) or (one.kind is two.kind and example.off <= APART * other.off)


def _witnesses(operation: str, target: Target, *, half: bool) -> Iterator[tuple[str, Target]]:
    """Yield name and target of PyTorch's own operator and of the formula, with the signature of the target's own.

    half: for the half formats, where other orders of the formula count as well. In a full format cancellation or
    overflow that only another order has is a fault of that order: a variance by one pass is NaN at ordinary means.
    """
    own = target.operation(operation)
    constants = target.domain(operation).constants
    peer = getattr(load("torch").implementation, operation, None)
    if own is None:
        return
    if callable(peer) and not target.spec.startswith("torch"):  # nothing is a witness of itself
        name = _OPERATORS.get(operation, "PyTorch's composition of it")
        yield name, _instead(target, operation, own, _with_constants(peer, constants))
    for name, composed in compositions(operation, peer if callable(peer) else None):
        yield name, _instead(target, operation, own, _with_constants(composed, constants))
    record = RECORDS.get(operation)
    formulas = () if record is None else record.formulas if half else record.formulas[:1]
    for formula, rsqrt in itertools.product(formulas, (True, False)):
        assert record is not None
        yield STEPWISE, _instead(target, operation, own, _stepwise(record, formula, target, rsqrt=rsqrt))


def _instead(target: Target, operation: str, own: Operation, other: Operation) -> Target:
    """Return the target with another implementation of an operation, with the signature of its own."""

    @functools.wraps(own)
    def call(*args: Any, **options: Any) -> Any:
        return other(**dict(zip(POSITIONAL[operation], args, strict=False)), **options)

    with contextlib.suppress(ValueError, TypeError):  # a built-in without one
        vars(call)["__signature__"] = inspect.signature(own)
    return replace(target, implementation=SimpleNamespace(**{operation: call}))


def _with_constants(function: Operation, constants: Mapping[str, Any]) -> Operation:
    def call(**arguments: Any) -> Any:
        return function(**{**constants, **arguments})

    return call


def _stepwise(record: OpInfo, formula: Formula, target: Target, *, rsqrt: bool) -> Operation:
    """Return a formula of an operation as an implementation: each step is rounded to the inputs' dtype."""
    constants = target.domain(record.name).constants

    def call(**arguments: Any) -> Any:
        xp = TorchArithmetic(dtype_of(arguments), rsqrt=rsqrt)
        conventions = record.convention_kwargs(target.claims)
        (value,) = formula(xp, {**constants, **xp.lift(arguments), **conventions})
        return value.tensor

    return call
