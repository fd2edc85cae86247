"""Every check of whole models was seen failing: for each requirement a small fault that it must catch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.test_generate import FAULTS as OF_GENERATION
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants.combinators import faulty
from veriformer.verify.mutants.faults import models as known
from veriformer.verify.mutants.staged_reference.model import Decoder, EncoderDecoder, KVCache, Scene, Shape
from veriformer.verify.results import Status
from veriformer.verify.targets.kinds import MODELS
from veriformer.verify.targets.loading import wrap

PROFILE = Profile(name="red", examples=20, shrinks=0, timeout_s=60)


class Integers:
    def logits(self, h: Tensor) -> Tensor:
        return super().logits(h).round().long()


class Narrow:
    """A mask value that fp16 alone holds: in fp64 the hidden row overflows."""

    def bias(self, past: int, n: int) -> Tensor | None:
        huge = torch.finfo(torch.float64).max if self.head.weight.dtype == torch.float64 else 0.0
        return torch.full((1, n, past + n), huge) * 10.0


class DropsAlways:
    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        return F.dropout(super().embed(ids, positions), 0.2, training=True)


class Remembers:
    """A table that is made at the first call, and only grows with the longest text seen so far."""

    longest = 0

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        self.longest = max(self.longest, ids.shape[1])
        return super().embed(ids, positions) * (1 + self.longest)


class StaysInTraining:
    """Once it has been in training mode it does not leave it."""

    trained = False

    def train(self, mode: bool = True) -> Any:
        self.trained = self.trained or mode
        return super().train(self.trained)


class MixesRows:
    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        x = super().embed(ids, positions)
        return x + 0.1 * x.mean(0, keepdim=True)


class HidesFirst:
    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Any, *, causal: bool) -> Tensor:
        kept = None if mask is None else torch.cat((torch.zeros_like(mask[:, :1]), mask[:, 1:]), 1)
        return super().visible(ids, past, kept, documents, causal=causal)


class IgnoresMask:
    """Padding counts for positions but hides nothing: in an encoder; in a decoder it is counted in a mean."""

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        x = super().embed(ids, positions)
        return x + 0.1 * x.mean(1, keepdim=True)


class LooksAhead:
    def order(self, i: Tensor, j: Tensor, causal: bool) -> Tensor:
        return super().order(i, j - 1 if causal else j, causal)


class DeadToken:
    """The embedding of every third place is thrown away."""

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        return super().embed(ids, positions) * (positions % 3 != 0)[..., None]


class ForgetsOldest:
    """The first token is hidden from whoever goes on from a cache."""

    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Any, *, causal: bool) -> Tensor:
        see = super().visible(ids, past, mask, documents, causal=causal)
        return see & (torch.arange(see.shape[-1]) > 0) if past else see


class Shared(KVCache):
    """A copy that is none."""

    def __deepcopy__(self, memo: Any) -> KVCache:
        return self


class SharedCache:
    def run(self, ids: Tensor, mask: Tensor | None, kv_cache: KVCache | None, *more: Any, **options: Any) -> Tensor:
        if kv_cache is not None:
            kv_cache.__class__ = Shared
        return super().run(ids, mask, kv_cache, *more, **options)


class HalfReordered(KVCache):
    def reorder(self, index: Tensor) -> None:
        self.layers = {layer: (k[index], v) for layer, (k, v) in self.layers.items()}


class ReordersHalf:
    def run(self, ids: Tensor, mask: Tensor | None, kv_cache: KVCache | None, *more: Any, **options: Any) -> Tensor:
        if kv_cache is not None:
            kv_cache.__class__ = HalfReordered
        return super().run(ids, mask, kv_cache, *more, **options)


class KeepsUnsaved:
    def state_dict(self, *arguments: Any, **options: Any) -> Any:
        found = copy.copy(super().state_dict(*arguments, **options))
        found["norm.weight"] = torch.ones_like(found["norm.weight"]) * 1.5
        return found


class NoGradientThere:
    def logits(self, h: Tensor) -> Tensor:
        return F.linear(h, self.head.weight.detach())


class UnevenGradient:
    """The gradient is divided by the number of rows, though the loss is a sum."""

    def logits(self, h: Tensor) -> Tensor:
        return super().logits(h * (1 / len(h)) + (h * (1 - 1 / len(h))).detach())


class LossOfAll:
    def loss(self, logits: Tensor, labels: Tensor | None) -> Tensor | None:
        return None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten())


class OtherMath:
    """Model where one backend of attention gives another result: a stand-in for a window that it forgets."""

    def run(self, *arguments: Any, **options: Any) -> Tensor:
        h = super().run(*arguments, **options)
        return h if torch.backends.cuda.flash_sdp_enabled() else h * 1.01


class FreshDropout:
    def recomputed(self, block: Any, x: Tensor, scene: Scene, layer: int) -> Tensor:
        return torch.utils.checkpoint.checkpoint(block, x, scene, layer, use_reentrant=False, preserve_rng_state=False)


class HalfOverflows:
    def logits(self, h: Tensor) -> Tensor:
        return super().logits(h).clamp(max=0.0 if h.dtype == torch.bfloat16 else torch.inf)


class UnmaskedSource:
    def seen(self, real: Tensor) -> Tensor:
        return super().seen(torch.ones_like(real))


class DeafToSource:
    def encode(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().encode(torch.zeros_like(ids), mask)


class LooksAheadFar:
    def order(self, i: Tensor, j: Tensor, causal: bool) -> Tensor:
        return super().order(i, j - int(causal and len(i) > 48), causal)


class OtherWhenLong:
    """As where the base of a rotation follows the length of the call."""

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        return super().embed(ids, positions) * (1.5 if ids.shape[1] > 24 else 1.0)


class RemembersLong:
    longest = 0

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        self.longest = max(self.longest, ids.shape[1])
        return super().embed(ids, positions) * (1.5 if self.longest > 32 else 1.0)


class ForgetsBehindMany:
    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Any, *, causal: bool) -> Tensor:
        see = super().visible(ids, past, mask, documents, causal=causal)
        return see & (torch.arange(see.shape[-1]) > 0) if past and see.shape[-1] > 32 else see


class UnmaskedAlone:
    """A mask of one row is taken for none."""

    def visible(self, ids: Tensor, past: int, mask: Tensor | None, documents: Any, *, causal: bool) -> Tensor:
        return super().visible(ids, past, None if len(ids) == 1 else mask, documents, causal=causal)


class UnsavedNumbers:
    def __init__(self, s: Shape) -> None:
        super().__init__(s)
        self.register_buffer("drawn", torch.rand(s.width), persistent=False)

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        return super().embed(ids, positions) * self.drawn


class UnmaskedSourceLater:
    """Model that sees all of the source when it goes on from a cache."""

    def run(self, ids: Tensor, mask: Any, kv_cache: Any, documents: Any = None, source: Any = None) -> Tensor:
        if kv_cache is not None and kv_cache.length:
            source = source[0], torch.ones_like(source[1])
        return super().run(ids, mask, kv_cache, documents, source)


RARE: dict[str, type] = {
    "causal_lm.causality": LooksAheadFar,
    "causal_lm.prefix": OtherWhenLong,
    "masked_lm.right_padding": OtherWhenLong,
    "causal_lm.history": RemembersLong,
    "causal_lm.cache_split": ForgetsBehindMany,
    "causal_lm.left_padding": UnmaskedAlone,
    "causal_lm.saved": UnsavedNumbers,
    "seq2seq_lm.source_padding": UnmaskedSourceLater,
}
"""Faults behind a length, in a batch of one or through a cache alone."""

FAULTS: dict[str, type] = {
    "contract": Integers,
    "double": Narrow,
    "deterministic": DropsAlways,
    "history": Remembers,
    "mode": StaysInTraining,
    "batch": MixesRows,
    "mask_of_ones": HidesFirst,
    "right_padding": IgnoresMask,
    "padding_content": IgnoresMask,
    "left_padding": IgnoresMask,
    "causality": LooksAhead,
    "prefix": LooksAhead,
    "reach": LooksAhead,
    "cache_split": ForgetsOldest,
    "cache_steps": ForgetsOldest,
    "cache_padding": ForgetsOldest,
    "cache_branch": SharedCache,
    "cache_reorder": ReordersHalf,
    "packing": IgnoresMask,
    "saved": KeepsUnsaved,
    "slope": NoGradientThere,
    "accumulation": UnevenGradient,
    "loss": LossOfAll,
    "backends": OtherMath,
    "checkpointing": FreshDropout,
    "half_loss": HalfOverflows,
    "source_padding": UnmaskedSource,
    "source_reach": DeafToSource,
}


def model(operation: str, fault: type | None = None) -> Callable[[], Any]:
    base = EncoderDecoder if operation == "seq2seq_lm" else Decoder
    kind = base if fault is None else type(fault.__name__, (fault, base), {})
    return lambda: kind(Shape(causal=operation != "masked_lm", cross=operation == "seq2seq_lm", position="relative"))


CHECKS = [check for check in checks() if check.operation in MODELS]


def test_the_table_covers_every_requirement() -> None:
    assert {r.slug.partition(".")[2] for r in REQUIREMENTS if r.operation in MODELS} == {
        *FAULTS,
        *OF_GENERATION.values(),
    }


FIRST = {check.requirement.slug.partition(".")[2]: check for check in reversed(CHECKS)}
"""First check of each law: the checks of the three operations are one function."""


@pytest.mark.whole
@pytest.mark.parametrize("check", [FIRST[law] for law in FAULTS], ids=lambda check: check.requirement.slug)
def test_a_fault_is_seen(check: Any) -> None:
    fault = FAULTS[check.requirement.slug.partition(".")[2]]
    broken = SimpleNamespace(**{check.operation: model(check.operation, fault)})
    result = run_check(CheckRun(check, check.dtypes[0]), wrap(broken), PROFILE, "red", {})
    assert result.status is Status.FAIL, f"{result.status}: {result.message}"


@pytest.mark.whole
@pytest.mark.parametrize("slug", RARE)
def test_a_rare_fault_is_seen(slug: str) -> None:
    (check,) = (c for c in CHECKS if c.requirement.slug == slug)
    broken = SimpleNamespace(**{check.operation: model(check.operation, RARE[slug])})
    result = run_check(CheckRun(check, check.dtypes[0]), wrap(broken), PROFILE, "red", {})
    assert result.status is Status.FAIL, f"{result.status}: {result.message}"


KILLERS = {
    "POS-01": "left_padding",
    "MASK-08": "cache_padding",
    "MASK-13": "packing",
    "MASK-14": "packing",
    "ROPE-05": "cache_split",
    "T5-01": "left_padding",
    "T5-02": "cache_steps",
    "ALIBI-03": "cache_steps",
    "KV-01": "cache_steps",
    "EMB-01": "saved",
    "EMB-02": "slope",
    "CE-02": "loss",
    "DO-05": "checkpointing",
}


@pytest.mark.whole
@pytest.mark.parametrize("identifier", sorted(known.FAULTS))
def test_a_mutant_dies_by_the_law_that_it_breaks(identifier: str) -> None:
    operation, fault = next(iter(known.FAULTS[identifier].items()))
    (check,) = (c for c in CHECKS if c.requirement.slug == f"{operation}.{KILLERS[identifier]}")
    result = run_check(
        CheckRun(check, "fp64"), wrap(SimpleNamespace(**{operation: faulty(operation, fault)})), PROFILE, "red", {}
    )
    assert result.status is Status.FAIL, f"{result.status}: {result.message}"
