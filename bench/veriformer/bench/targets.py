"""What can be counted, by the names that the command line takes: the one place here that knows an implementation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from veriformer.bench.calls import Attention
from veriformer.bench.claims import AS_PRINTED, IN_BLOCKS, Costs


@dataclass(frozen=True)
class Target:
    """An attention to be counted. skips_blocks: whether blocks that a causal mask hides as a whole are left out."""

    name: str
    attention: Attention
    costs: Costs
    skips_blocks: bool


_SHIPPED: dict[str, tuple[str, Costs, bool]] = {
    "impl:reference": ("reference", AS_PRINTED, False),
    "impl:tiled": ("tiled", IN_BLOCKS, True),
    "impl:sdpa": ("sdpa", IN_BLOCKS, True),
}

NAMES = tuple(_SHIPPED)


class UnknownTargetError(ValueError):
    """No such target; the message lists those there are."""


def find(name: str) -> Target:
    """The target of that name. Raises UnknownTargetError."""
    if name not in _SHIPPED:
        raise UnknownTargetError(f"target {name!r}: expected one of {', '.join(NAMES)}")
    from veriformer.impl import BACKENDS

    backend, costs, skips_blocks = _SHIPPED[name]
    return Target(name, BACKENDS[backend], costs, skips_blocks)


def triton_attention() -> Attention:
    """Our attention by its Triton kernels. Raises RuntimeError, which says what is missing, where none can run."""
    from veriformer.impl import BACKENDS
    from veriformer.impl.attention_backends.flash.availability import require

    require()
    return BACKENDS["triton"]


def gpt_loss(*, vocabulary: int, width: int, layers: int, heads: int, length: int) -> torch.nn.Module:
    """Our decoder in GPT-2's form with its loss: a module that gives the mean loss of ids `[B, n]` against labels."""
    from veriformer.impl.models.decoder import Decoder
    from veriformer.impl.models.families import gpt
    from veriformer.impl.training.objective import Objective

    class MeanLoss(Objective):
        def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return super().forward(ids, labels) / labels.numel()

    config = gpt(vocab_size=vocabulary, d_model=width, num_layers=layers, num_heads=heads, max_length=length)
    return MeanLoss(Decoder(config))


def adamw(params: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    """Our AdamW at PyTorch's own options."""
    from veriformer.impl.optimization.adam import adamw as ours

    return ours(params, 1e-3)


def from_transformers(peer: torch.nn.Module) -> Any:
    """Our model with the weights of one of transformers."""
    from veriformer.impl.interop import from_transformers as ours

    return ours(peer)


def compiled_decoder(model: Any) -> Any:
    """Our model, reading single tokens by one compiled graph."""
    from veriformer.impl.generation.compiled import CompiledDecoder

    return CompiledDecoder(model)


def generate(model: Any, ids: torch.Tensor, new: int) -> torch.Tensor:
    """Continue greedily with our static cache: `[B, n + new]`."""
    from veriformer.impl.generation.generate import generate as ours

    return ours(model, ids, max_new_tokens=new)
