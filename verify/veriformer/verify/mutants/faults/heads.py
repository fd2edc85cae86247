"""Faults of heads, linear attention and the block."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.verify.mutants.base.attention import Attention
from veriformer.verify.mutants.base.heads import Block, Linear, MultiHead
from veriformer.verify.mutants.faults.attention import model_width, tiled
from veriformer.verify.targets.front import Kernel

Branch = Callable[[Tensor], Tensor]


def _unpermuted(x: Tensor) -> Tensor:
    B, H, n, d = x.shape
    return x.reshape(B, n, H * d)


def _ignored_in_cross_attention(real: Tensor | None, alone: bool) -> Tensor | None:
    return real[:, None, None, :] if real is not None and alone else None


def _elementwise(a: Tensor, phi_q: Tensor, phi_k: Tensor, v: Tensor) -> Tensor:
    """Each feature of the state is divided by its own sum: Σ_d q_d S_d / z_d; a holds which keys are seen."""
    seen = (a > 0).to(a.dtype)
    z = seen @ phi_k  # [B, H, n_q, d]
    weights = (phi_q / torch.where(z == 0, 1, z)) @ phi_k.mT * seen
    return weights @ v


def _severed(a: Tensor, phi_q: Tensor, phi_k: Tensor, v: Tensor) -> Tensor:
    """The keys of the normaliser carry no gradient."""
    seen = (a > 0).to(a.dtype)
    total = (phi_q @ phi_k.detach().mT * seen).sum(-1, keepdim=True)
    return a @ v / torch.where(total == 0, 1, total)


def _after_norm(x: Tensor, norm: Branch, branch: Branch) -> Tensor:
    x = norm(x)
    return x + branch(x)


def _before_norm(x: Tensor, norms: tuple[Branch, Branch], branches: tuple[Branch, Branch]) -> Tensor:
    z = x + branches[0](x)
    return norms[1](z + branches[1](norms[0](z)))


KERNELS: dict[str, dict[str, Kernel]] = {
    "ATT-01": {"multi_head_attention": MultiHead(attend=Attention(scale=model_width))},
    "ATT-05": {"multi_head_attention": MultiHead(join=_unpermuted)},
    "GQA-01": {"multi_head_attention": MultiHead(attend=Attention(heads=tiled))},
    "MASK-08": {"multi_head_attention": MultiHead(mask=_ignored_in_cross_attention)},
    "LIN-02": {"linear_attention": Linear(ratio=_elementwise)},
    "LIN-03": {"linear_attention": Linear(ratio=_severed)},
    "BLK-01": {"transformer_block": Block(pre=_after_norm)},
    "BLK-02": {"transformer_block": Block(post=_before_norm)},
}
