"""Faults of heads, linear attention and the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, given, replaced_by
from veriformer.verify.mutants.staged_reference.heads import Block, Linear, MultiHead

Branch = Callable[[Tensor], Tensor]


def _model_width(x: Tensor, w_q: Tensor, *weights: Tensor, **options: Any) -> Any:
    """Scores over √(H d_k), not √d_k."""
    return (x, w_q / options["num_heads"] ** 0.5, *weights), options


def _tiled(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, **options: Any) -> Any:
    """Key heads one after the other, and again, in place of each beside its copies."""
    H, G = options["num_heads"], options.get("num_kv_heads") or options["num_heads"]
    return (x, w_q, *(w.repeat(1, H // G) for w in (w_k, w_v)), w_o), {**options, "num_kv_heads": H}


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


FAULTS: dict[str, dict[str, Fault]] = {
    "ATT-01": {"multi_head_attention": given(_model_width)},
    "ATT-05": {"multi_head_attention": replaced_by(MultiHead(join=_unpermuted))},
    "GQA-01": {"multi_head_attention": given(_tiled)},
    "MASK-08": {"multi_head_attention": replaced_by(MultiHead(mask=_ignored_in_cross_attention))},
    "LIN-02": {"linear_attention": replaced_by(Linear(ratio=_elementwise))},
    "LIN-03": {"linear_attention": replaced_by(Linear(ratio=_severed))},
    "BLK-01": {"transformer_block": replaced_by(Block(pre=_after_norm))},
    "BLK-02": {"transformer_block": replaced_by(Block(post=_before_norm))},
}
