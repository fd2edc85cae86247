"""A whole model under test: built once, with its capabilities and perturbed copies."""

# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from veriformer.verify.operations.models import noise
from veriformer.verify.scripts import model_drivers as calls
from veriformer.verify.targets.target import Target


@dataclass(eq=False)
class Subject:
    """The model that a target provides under one operation.

    Abilities follow from the model's call alone: the names of its arguments, and what a plain call returns.
    """

    target: Target
    operation: str
    _moved: dict[tuple[int, float], nn.Module] = field(default_factory=dict)

    @cached_property
    def dtype(self) -> torch.dtype:
        """fp64 where it is promised and the model gives finite results in it, with and without padding; else fp32."""
        promised = self.target.claims.promises(self.operation, "fp64")
        narrow = not (promised and self._finite(torch.float64)) and self._finite(torch.float32)
        return torch.float32 if narrow else torch.float64

    def _finite(self, dtype: torch.dtype) -> bool:
        try:
            return self._finite_when_padded(dtype)
        except Exception:
            return False

    def _finite_when_padded(self, dtype: torch.dtype) -> bool:
        ids = torch.zeros(2, 12, dtype=torch.int64)
        mask = torch.ones_like(ids)
        mask[0, :8] = mask[1, 4:] = 0
        model, source = self.model(dtype), self.source(ids)
        given = [None] if calls.takes(model, "attention_mask", "decoder_attention_mask") is None else [None, mask]
        return all(bool(calls.whole(model, ids, m, **source).isfinite().all()) for m in given)

    def model(self, dtype: torch.dtype | None = None) -> nn.Module:
        """Return the model itself, in evaluation mode."""
        built: nn.Module = calls.build(self.target.implementation, self.operation, dtype or self.dtype)
        return built

    def moved(self, number: int, coarse: float = 0.0) -> nn.Module:
        """Return a copy of the model whose parameters carry a random roundoff, by its number; the first are cached."""
        if number >= noise.RUNS:
            return noise.perturb(self.model(), number, coarse)
        if (number, coarse) not in self._moved:
            self._moved[number, coarse] = noise.perturb(self.model(), number, coarse)
        return self._moved[number, coarse]

    @cached_property
    def vocabulary(self) -> int:
        """Size of the vocabulary: the last axis of the logits."""
        return int(self._probe(self.dtype).shape[-1])

    def _probe(self, dtype: torch.dtype) -> torch.Tensor:
        ids = torch.zeros(1, 2, dtype=torch.int64)
        found: torch.Tensor = calls.whole(self.model(dtype), ids, **self.source(ids))
        return found

    def source(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the source of an encoder–decoder; nothing for the others."""
        return {"source": ids} if self.operation == "seq2seq_lm" else {}

    def takes(self, *names: str) -> bool:
        """Return whether the call has an argument of one of these names."""
        return calls.takes(self.model(), *names) is not None

    @property
    def masked(self) -> bool:
        """True if the tokens that the logits belong to can be given a mask."""
        return self.takes("decoder_attention_mask" if self.operation == "seq2seq_lm" else "attention_mask")

    @cached_property
    def positions(self) -> str:
        """Claimed source of positions: the mask, or the caller."""
        return self.target.claims.convention("causal_lm.positions")

    @cached_property
    def past(self) -> Any:
        """The cache that a call returns where the model has one, else None."""
        if not (self.takes("past_key_values") and self.takes("use_cache")):
            return None
        ids = torch.zeros(2, 3, dtype=torch.int64)
        with torch.no_grad():
            return getattr(calls.ask(self.model(), ids, use_cache=True, **self.source(ids)), "past_key_values", None)

    @cached_property
    def attention(self) -> frozenset[str]:
        """The names of the fused attention kernels that a plain call runs."""
        return frozenset(name for name in self._computed.names if "scaled_dot_product" in name)

    @cached_property
    def eps(self) -> float:
        """The unit in the last place, relative, of the coarsest format that a plain call computes or stores in."""
        return max(torch.finfo(self.dtype).eps, *self._computed.eps)

    @cached_property
    def _computed(self) -> _Seen:
        seen = _Seen()
        with torch.compiler.set_stance("force_eager"), seen:
            self._probe(self.dtype)
        return seen

    @cached_property
    def scalable(self) -> bool:
        """True if embeddings can be scaled from outside, as they cannot where a compiler has fixed the call."""
        ids = torch.tensor([[0, self.vocabulary - 1]])
        given = self.source(ids)
        try:
            one, less, two = (calls.whole(self.model(), ids, loudness=x, **given) for x in (1.0, 2.0**-7, 1.0))
        except Exception:
            return False
        return bool(less.isfinite().all()) and torch.equal(one, two) and not torch.equal(one, less)

    @cached_property
    def backends(self) -> tuple[str, ...]:
        """Ways of computing attention: of the model's own switch, or else of PyTorch's fused attention."""
        if not hasattr(self.model(), "set_attn_implementation"):
            return ("MATH", "default") if self.attention else ()
        return tuple(name for name in ("eager", "sdpa", "flex_attention") if self._settable(name))

    def _settable(self, name: str) -> bool:
        try:
            with calls.attending(self.model(), name):
                return True
        except Exception:  # transformers says with ValueError that an architecture lacks it, others otherwise
            return False

    @cached_property
    def trainable(self) -> bool:
        """True if some parameter requires a gradient."""
        return any(p.requires_grad for p in self.model().parameters())


class _Seen(TorchDispatchMode):
    """Recorder of the names of called operations, and of the eps of their floating-point results."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.eps: set[float] = {0.0}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.name())
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, tuple | list) else [result]:
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                self.eps.add(torch.finfo(x.dtype).eps)
        return result


_SUBJECTS: dict[tuple[int, str], Subject] = {}


def subject(target: Target, operation: str) -> Subject:
    """Return the model of a target, made once in a process."""
    key = id(target.implementation), operation
    if key not in _SUBJECTS:
        _SUBJECTS[key] = Subject(target, operation)
    return _SUBJECTS[key]
