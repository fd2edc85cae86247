"""Faults of heads, linear attention and the block."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from veriformer.verify.mutants.combinators import Fault, change_arguments, edited


def _model_width(x: Tensor, w_q: Tensor, *weights: Tensor, **options: Any) -> Any:
    """Divide scores by √(H d_k), not √d_k."""
    return (x, w_q / options["num_heads"] ** 0.5, *weights), options


def _tiled(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, **options: Any) -> Any:
    """Repeat key heads as 0, 1, …, 0, 1, …, in place of 0, 0, …, 1, 1, …."""
    H, G = options["num_heads"], options.get("num_kv_heads") or options["num_heads"]
    return (x, w_q, *(w.repeat(1, H // G) for w in (w_k, w_v)), w_o), {**options, "num_kv_heads": H}


FAULTS: dict[str, dict[str, Fault]] = {
    "ATT-01": {"multi_head_attention": change_arguments(_model_width)},
    "ATT-05": {
        "multi_head_attention": edited(
            "multi_head_attention", ("xp.reshape(xp.swapaxes(x, 1, 2), (b, n", "xp.reshape(x, (b, n")
        )
    },
    "GQA-01": {"multi_head_attention": change_arguments(_tiled)},
    # The mask of a context is ignored.
    "MASK-08": {
        "multi_head_attention": edited(
            "multi_head_attention",
            ("mask=_seen(attention_mask)", "mask=_seen(attention_mask) if context is None else None"),
        )
    },
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
    # The residual connection starts behind the norm.
    "BLK-01": {
        "transformer_block": edited(
            "transformer_block",
            (
                "        return x + branch.value(layer_norm(xp, x, weight, bias, eps=eps))",
                "        x = layer_norm(xp, x, weight, bias, eps=eps)\n        return x + branch.value(x)",
            ),
        )
    },
    # The second residual connection of the block "post" starts before the first norm.
    "BLK-02": {
        "transformer_block": edited(
            "transformer_block",
            (
                "    h = attention_sublayer(",
                '    if norm == "post":\n'
                "        first, second = _attention(xp, params, options), _feed_forward(xp, params, activation)\n"
                "        z = x + first.value(x)\n"
                "        y = z + second.value(layer_norm(xp, z, *first.norm.values(), eps=eps))\n"
                "        return layer_norm(xp, y, *second.norm.values(), eps=eps)\n"
                "    h = attention_sublayer(",
            ),
        )
    },
}
