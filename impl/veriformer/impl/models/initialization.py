"""First weights."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from veriformer.impl.models.attention import CrossAttention, SelfAttention
from veriformer.impl.models.block import TransformerStack
from veriformer.impl.models.config import ModelConfig
from veriformer.impl.models.embedding import Table
from veriformer.impl.models.feed_forward import FeedForward, MixtureOfExperts
from veriformer.impl.models.head import Head
from veriformer.impl.models.linear import Linear
from veriformer.impl.models.position import RelativeBias


def initialize(model: nn.Module, config: ModelConfig) -> None:
    """Draw every weight; biases are 0 and norms 1.

    `gpt2`: N(0, `init_std`²), and the projections that feed a residual stream of N branches divided by √N, so that its
    variance does not grow with depth. `xavier`: N(0, 2 / (n_in + n_out)) for projections (equation 49), also for those
    that share one product. Queries and keys are multiplied by `qk_gain`: below 1, attention does not start peaked.
    """
    for module in model.modules():
        if isinstance(module, Table | RelativeBias):
            nn.init.normal_(module.weight, std=config.init_std)
        elif isinstance(module, Linear | Head) and module.weight is not None:
            _draw(module.weight.data, config)
    for stack in model.modules():
        if isinstance(stack, TransformerStack):
            _branches(stack, config)


def _draw(weight: Tensor, config: ModelConfig, gain: float = 1.0) -> None:
    xavier = math.sqrt(2 / (weight.shape[-2] + weight.shape[-1]))
    nn.init.normal_(weight, std=gain * (xavier if config.init == "xavier" else config.init_std))


def _branches(stack: TransformerStack, config: ModelConfig) -> None:
    kinds = (SelfAttention, CrossAttention, FeedForward, MixtureOfExperts)
    branches = [module for module in stack.modules() if isinstance(module, kinds)]
    last = len(branches) ** -0.5 if config.init == "gpt2" else 1.0
    for branch in branches:
        for weight, gain in _weights(branch, config.qk_gain, last):
            _draw(weight.data, config, gain)


def _weights(branch: nn.Module, qk: float, last: float) -> Iterator[tuple[Tensor, float]]:
    """Give each matrix of a branch and its gain."""
    match branch:
        case SelfAttention():
            q, k, v = torch.split(branch.qkv.weight, list(branch.sizes), dim=1)
            yield from ((q, qk), (k, qk), (v, 1.0), (branch.out.weight, last))
        case CrossAttention():
            k, v = branch.kv.weight.chunk(2, 1)
            yield from ((branch.q.weight, qk), (k, qk), (v, 1.0), (branch.out.weight, last))
        case FeedForward():
            yield from ((up, 1.0) for up in branch.up.weight.chunk(2 if branch.gated else 1, 1))
            yield branch.down.weight, last
        case MixtureOfExperts():
            yield from ((branch.router, 1.0), (branch.w1, 1.0), (branch.w2, last))
