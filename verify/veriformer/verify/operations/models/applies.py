"""Capabilities of a model under test: each function returns the reason for a missing one, or None.

A model that cannot be built or called at all is no matter of support: the check says what it raised.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.operations.models.subject import Subject, subject
from veriformer.verify.scripts import model_drivers as calls
from veriformer.verify.targets.target import Target

Applies = Callable[[Target, str, str], str | None]


def _ability(reason: str) -> Callable[[Callable[[Subject], bool]], Applies]:
    def bound(able: Callable[[Subject], bool]) -> Applies:
        @wraps(able)
        def applies(target: Target, operation: str, dtype: str) -> str | None:
            try:
                model = subject(target, operation)
                if dtype != "bf16" and dtypes.TORCH[dtype] != model.dtype:
                    return f"judged in {dtypes.canonical(str(model.dtype))}"
                return None if able(model) else reason
            except Exception:
                return None

        return applies

    return bound


@_ability("")
def always(model: Subject) -> bool:
    """Return True: every model is judged in one dtype, fp64 where it can be called in it."""
    return True


@_ability("the model's call has no argument attention_mask")
def has_mask(model: Subject) -> bool:
    """Return whether a mask can be given."""
    return model.masked


@_ability("the model's call has no attention_mask, or leaves positions to its caller and has no position_ids")
def has_positions_or_mask(model: Subject) -> bool:
    """Return whether a mask can be given, and positions too where the caller gives them."""
    return model.masked and _placed(model)


def _placed(model: Subject) -> bool:
    return model.positions == "mask" or model.takes("position_ids", "decoder_position_ids")


@_ability("a call with use_cache=True returns no past_key_values")
def has_cache(model: Subject) -> bool:
    """Return whether a call can resume from the cache of another."""
    return model.past is not None


@_ability("the model has no cache, or its call no attention_mask")
def has_cache_and_mask(model: Subject) -> bool:
    """Return whether the model has a cache and takes a mask."""
    return model.past is not None and model.masked and _placed(model)


@_ability("past_key_values have no method reorder_cache or reorder")
def has_reorder(model: Subject) -> bool:
    """Return whether the rows of the cache can be reordered."""
    return hasattr(model.past, "reorder_cache") or hasattr(model.past, "reorder")


@_ability("the model's call has no argument labels")
def has_labels(model: Subject) -> bool:
    """Return whether the model computes a loss from labels."""
    return model.takes("labels")


@_ability("the model's call takes no numbers of documents")
def has_documents(model: Subject) -> bool:
    """Return whether several documents can be packed in one row."""
    return model.takes(*calls.DOCUMENTS) or model.target.claims.convention("causal_lm.packing") == "position_ids"


@_ability("no parameter asks for a gradient")
def is_trainable(model: Subject) -> bool:
    """Return whether some parameter requires a gradient."""
    return model.trainable


@_ability("no parameter asks for a gradient, or the model's call has no attention_mask")
def is_trainable_and_has_mask(model: Subject) -> bool:
    """Return whether the model is trainable and takes a mask."""
    return model.trainable and model.masked


@_ability("the model has no gradient_checkpointing_enable, or says that it does not support it")
def has_checkpointing(model: Subject) -> bool:
    """Return whether activations can be recomputed by gradient checkpointing."""
    enables = hasattr(model.model(), "gradient_checkpointing_enable")
    return model.trainable and enables and getattr(model.model(), "supports_gradient_checkpointing", True)


@_ability("the model has one way of computing attention: it can set no other, nor does it call PyTorch's fused one")
def has_backends(model: Subject) -> bool:
    """Return whether the model has several attention backends."""
    return len(model.backends) > 1


@_ability("the model's call has no argument attention_mask for the source")
def has_source_mask(model: Subject) -> bool:
    """Return whether the source can be padded."""
    return model.takes("attention_mask")


_NO_GENERATE = "the model has no generate that takes a number of new tokens, or has that of its library"


@functools.cache
def writes_batches(model: Subject) -> bool:
    """Return whether ``generate`` takes several rows; also true if it takes none, reported when asked."""
    prompt = torch.zeros(2, 2, dtype=torch.int64)
    return _answers(model, prompt) or not _answers(model, prompt[:1])


def _answers(model: Subject, prompt: torch.Tensor) -> bool:
    try:
        return len(calls.generated(model.model(), prompt, new=2, greedy=True)) == len(prompt)
    except Exception:
        return False


def _decodes(model: Subject) -> str:
    """Return the decoding of ``generate``: "greedy", "chance", or "both" by option; "" without ``generate``."""
    inner, names = model.model(), calls.settings_of(model.model())
    calling: Any = getattr(inner, "calling", None)
    if not names or (calling is not None and calling.source):
        return ""
    if names.keys() & {"temperature", "top_k", "sampled"}:
        return "both"
    prompt = torch.zeros(64, 2, dtype=torch.int64)
    each = not writes_batches(model)
    one, two = (calls.generated(inner, prompt, new=2, seed=seed, each=each) for seed in (0, 1))
    return "greedy" if torch.equal(one, two) else "chance"


@_ability(f"{_NO_GENERATE}, or it draws its tokens in every call")
def generates_greedily(model: Subject) -> bool:
    """Return whether ``generate`` can decode greedily."""
    return _decodes(model) in ("both", "greedy")


@_ability(f"{_NO_GENERATE}, or it draws none")
def generates_by_chance(model: Subject) -> bool:
    """Return whether ``generate`` can sample."""
    return _decodes(model) in ("both", "chance")


@_ability(f"{_NO_GENERATE}, draws its tokens in every call, says no longest text, or refuses to go on behind it")
def generates_beyond_its_window(model: Subject) -> bool:
    """Return whether ``generate`` continues a text as long as the model's window."""
    window = calls.window_of(model.model())
    if window is None or window > 1024 or _decodes(model) not in ("both", "greedy"):
        return False
    try:
        calls.generated(model.model(), torch.zeros(1, window, dtype=torch.int64), new=2, greedy=True)
    except Exception:
        return False
    return True
