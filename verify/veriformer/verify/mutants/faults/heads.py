"""Faults of heads, linear attention and the block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, given, replaced_by
from veriformer.verify.mutants.formulas import edited
from veriformer.verify.mutants.staged_reference.heads import Block, MultiHead

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
    # Each feature of the state is divided by its own sum: Σ_d q_d S_d / z_d.
    "LIN-02": {
        "linear_attention": edited(
            "linear_attention",
            (
                "    return _Trace(phi_q, phi_k, see, sums, a / sums)",
                "    z = xp.where(see.any(axis=-1, keepdims=True), xp.matmul(see.astype(float), phi_k), 1)\n"
                "    p = xp.where(see, xp.matmul(phi_q / z, xp.swapaxes(phi_k, -1, -2)), 0)\n"
                "    return _Trace(phi_q, phi_k, see, sums, p)",
            ),
        )
    },
    # The keys of the normaliser carry no gradient.
    "LIN-03": {
        "linear_attention": edited(
            "linear_attention",
            (
                "xp.sum(a, axis",
                "xp.sum(xp.where(see, xp.matmul(phi_q, xp.swapaxes(xp.constant(phi_k), -1, -2)), 0), axis",
            ),
        )
    },
    "BLK-01": {"transformer_block": replaced_by(Block(pre=_after_norm))},
    "BLK-02": {"transformer_block": replaced_by(Block(post=_before_norm))},
}
