"""Operations computed by the formulas of the spec over PyTorch tensors, as written or with edits of their source.

Halves are computed in fp32 and rounded at the end; autograd differentiates the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from veriformer.spec.edits import Edit, edited
from veriformer.spec.efficient.cached_attention import cached_attention
from veriformer.spec.efficient.kv_cache import cache_update
from veriformer.spec.generation.beam_search import beam_search
from veriformer.spec.language.bpe import bpe_encode, bpe_train
from veriformer.spec.language.unigram_segment import unigram_segment
from veriformer.spec.optimization.accumulate_gradients import accumulate_gradients
from veriformer.spec.optimization.adam import adam
from veriformer.spec.optimization.adamw import adamw
from veriformer.spec.optimization.gradient_descent import gradient_descent
from veriformer.spec.optimization.noam import noam
from veriformer.spec.optimization.sgd_momentum import sgd_momentum
from veriformer.spec.optimization.warmup import warmup
from veriformer.spec.optimization.warmup_cosine import warmup_cosine
from veriformer.verify.contract.signatures import SIGNATURES
from veriformer.verify.judging.arithmetic import TensorArray, TorchArithmetic, dtype_of
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.operations.derived import FormulaByName
from veriformer.verify.operations.registry import home
from veriformer.verify.targets.argument_validation import AttentionOptions
from veriformer.verify.targets.claims import Claims


def widen(x: Tensor) -> Tensor:
    """Return halves in fp32, everything else as it is."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class Rounding(TorchArithmetic):
    """Arithmetic of a call. inputs: dtype of the caller's tensors, which may be narrower than the computation's."""

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
    """Operation computed by its formula.

    edits: of the formula's source. dtype: to compute in another format. rsqrt: whether 1 / √x is PyTorch's ``rsqrt``.
    """

    operation: str
    edits: tuple[Edit, ...] = ()
    dtype: torch.dtype | None = None
    rsqrt: bool = False

    @property
    def formula(self) -> Callable[..., Any]:
        """The formula after the edits. Raises ValueError for one whose text does not stand there exactly once."""
        written = _STEPS.get(self.operation) or _record(self.operation).formulas[0]
        edits = (*_EDITS.get(self.operation, ()), *self.edits)
        if isinstance(written, FormulaByName):
            return replace(written, formula=edited(written.formula, edits))
        return edited(written, edits)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return the result, in the dtype of the first floating tensor, or the default one where there is none."""
        given = _with_mask(self.operation, _by_name(self.operation, arguments, options))
        dtype = dtype_of(given)
        conventions = _record(self.operation).convention_kwargs(Claims())
        xp = self.arithmetic(dtype)
        (found,) = self.formula(xp, xp.lift(given) | conventions)
        return found.tensor.to(dtype) if isinstance(found, TensorArray) else torch.as_tensor(found)

    def arithmetic(self, dtype: torch.dtype) -> Rounding:
        """Return the arithmetic of a call with tensors of this dtype."""
        return Rounding(self.dtype or widen(torch.empty(0, dtype=dtype)).dtype, dtype, rsqrt=self.rsqrt)

    def joined(self, other: FormulaKernel) -> FormulaKernel | None:
        """Return the kernel with the edits of both; None where they meet in one place, or differ besides."""
        both = replace(self, edits=(*self.edits, *other.edits))
        if both != replace(other, edits=both.edits):
            return None
        try:
            both.formula  # noqa: B018
        except ValueError:
            return None
        return both


_STEPS: Mapping[str, Callable[..., Any]] = {
    "kv_cache": cache_update,
    "cached_attention": cached_attention,
    "gradient_descent": gradient_descent,
    "sgd_momentum": sgd_momentum,
    "adam": adam,
    "adamw": adamw,
    "warmup": warmup,
    "warmup_cosine": warmup_cosine,
    "noam": noam,
    "accumulate_gradients": accumulate_gradients,
    "beam_search": beam_search,
    "bpe_train": bpe_train,
    "bpe_encode": bpe_encode,
    "unigram_segment": unigram_segment,
}
"""Formulas of operations that are no functions of tensors; the record has those of all others."""

_STABLE = "xp.exp(xp.minimum(z, 0)) / (1 + xp.exp(-abs(z)))"
_SIGMOID: Edit = ("return 1 / (1 + xp.exp(-z))", f"return {_STABLE}")
_ACTIVATION: Edit = (
    "    return (ACTIVATIONS | OTHERS)[activation]",
    f'    if activation == "sigmoid":\n        return {_STABLE}\n    return (ACTIVATIONS | OTHERS)[activation]',
)
"""Edits of the sigmoid and of activations by name: e^−z overflows far below zero, where the slope is then 0 · ∞."""

_HIDDEN_NAN: tuple[Edit, ...] = (
    (
        "xp.matmul(q, xp.swapaxes(k, -1, -2))",
        "xp.sum(q[..., :, None, :] * xp.where(see[..., None], k[..., None, :, :], 0), axis=-1)",
    ),
    ("e = xp.where(see, xp.exp(s - m), 0)", "e = xp.exp(xp.where(see, s - m, -math.inf))"),
    ("    return _Trace(", "    v = xp.where(see[..., None], v[..., None, :, :], 0)\n    return _Trace("),
    ("xp.matmul(t.p_dropped, t.v)", "xp.sum(t.p_dropped[..., None] * t.v, axis=-2)"),
)
"""Edits of attention for keys and values that some queries see, others do not, and that hold NaN: 0 · NaN is NaN."""

_EDITS: Mapping[str, tuple[Edit, ...]] = {
    **dict.fromkeys(("attention", "cached_attention", "multi_head_attention"), _HIDDEN_NAN),
    **dict.fromkeys(("silu", "swiglu"), (_SIGMOID,)),
    **dict.fromkeys(("mlp", "feed_forward"), (_ACTIVATION,)),
    "transformer_block": (_ACTIVATION, *_HIDDEN_NAN),
}
"""Edits that make an implementation of a formula, equal over the reals, where its steps leave the range."""


def _record(operation: str) -> OpInfo:
    record: OpInfo = vars(home(operation))[operation.upper()]
    return record


def _by_name(operation: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, as the record has them."""
    *rest, last = arguments or (None,)
    if isinstance(last, AttentionOptions):
        arguments, options = rest, {**options, **vars(last)}
    given = {**dict(zip(SIGNATURES[operation].parameters, arguments, strict=False)), **options}
    return {**given, **given.pop("params", {})}


_MASKED: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], Sequence[int]]]] = {
    "attention": ("dropout_p", lambda a: (*a["q"].shape[:3], a["k"].shape[2])),
    "dropout": ("p", lambda a: a["x"].shape),
    "feed_forward": ("dropout_p", lambda a: (*a["x"].shape[:-1], a["w1"].shape[1])),
}
"""By operation with dropout: the argument that holds its rate, and the shape of the mask of what is kept."""


def _with_mask(operation: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a mask of what dropout keeps, drawn entry by entry, in training."""
    rate, shape = _MASKED.get(operation, ("", None))
    if shape is None or not given.get("training") or not given[rate]:
        return given
    drawn = torch.rand(tuple(shape(given)), generator=given["generator"], dtype=torch.float64)
    return {**given, "keep": drawn >= given[rate]}
