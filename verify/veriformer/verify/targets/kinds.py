"""Targets that are judged by laws alone: bare models, and objects that train.

Of a model it is told what kind it is, and what is known of the library that it comes from. Objects that train are any
optimizer, and any schedule of its rates.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

MODELS = ("causal_lm", "masked_lm", "seq2seq_lm")
"""The kinds of whole models: decoders, encoders, and encoders with a decoder."""

HUGGING_FACE: Mapping[str, Any] = {"conventions": {"causal_lm.positions": "caller"}}
"""Models of transformers leave positions to their caller: ``position_ids``, which ``generate`` makes from the mask."""

FIRST_ARGUMENT: Mapping[str, str] = {"optimizer": "params", "lr_scheduler": "optimizer"}
"""By operation, the argument that it is given first."""

TRAINERS = tuple(FIRST_ARGUMENT)
"""``optimizer(params, **options)`` gives a ``torch.optim.Optimizer``; ``lr_scheduler(optimizer)`` gives an
``LRScheduler`` of it."""


def kind_of(model: nn.Module) -> str:
    """Return ``seq2seq_lm`` if the model takes decoder tokens, ``masked_lm`` if it says it cannot generate.

    Everything else is a ``causal_lm``.
    """
    known = inspect.signature(model.forward).parameters
    if "decoder_input_ids" in known or "decoder_ids" in known:
        return "seq2seq_lm"
    generates = getattr(model, "can_generate", None)
    return "masked_lm" if callable(generates) and not generates() else "causal_lm"


def claims_of(implementation: object) -> object:
    """Return the claims of an implementation; those of the library for a bare model of transformers."""
    own = getattr(implementation, "CLAIMS", None)
    library = isinstance(implementation, nn.Module) and hasattr(implementation, "prepare_inputs_for_generation")
    return HUGGING_FACE if own is None and library else own


def built_model(implementation: object) -> object:
    """Return the implementation, or the model that it builds if it is a function or class of models."""
    if not inspect.isfunction(implementation) and not (
        inspect.isclass(implementation) and issubclass(implementation, nn.Module)
    ):
        return implementation
    with torch.random.fork_rng():
        torch.manual_seed(0)
        built = implementation()
    return built if isinstance(built, nn.Module) else implementation
