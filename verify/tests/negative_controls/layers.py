"""Small faults of layers and positions, one for each law that must see it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import known, more
from veriformer.verify.mutants.combinators import Fault, Operation, altered, gradient_of, instead, without


def as_it_lies(op: Operation, positions: Tensor, **options: Any) -> Tensor:
    return op(positions if positions.is_contiguous() else positions + 1, **options)


def fewer_dropped(op: Operation, x: Tensor, p: float, **options: Any) -> Tensor:
    return op(x, p / 2, **options) * (1 - p / 2) / max(1 - p, 2.0**-10)


def uniform(op: Operation, n_in: int, n_out: int, *, generator: torch.Generator | None = None) -> Tensor:
    edge = (6 / (n_in + n_out)) ** 0.5
    return torch.empty(n_in, n_out).uniform_(-edge, edge, generator=generator)


def hidden_in_half(op: Operation, x: Tensor, router: Tensor, w1: Tensor, *rest: Tensor, **options: Any) -> Tensor:
    y: Tensor = op(x, router, w1, *rest, **options)
    hidden = (x.double()[..., None, None, :] @ w1.double()).half().amax((-1, -2, -3))
    return y + 0 * hidden[..., None].to(y.dtype)


def first_base(op: Operation) -> Operation:
    """Tables are kept by length alone."""
    known: dict[int, Any] = {}

    def broken(x: Tensor, positions: Tensor, *, base: float = 10000.0, **options: Any) -> Tensor:
        y: Tensor = op(x, positions, base=known.setdefault(x.shape[-2], base), **options)
        return y

    return broken


TOO_LARGE = [
    "mse_loss.sensitivity",
    "mse_loss.partition",
    "mse_loss.distance",
    "mse_loss.range",
    "mlp.sensitivity",
    "mlp.hidden_order",
    "mlp.homogeneous",
    "mlp.balance",
    "mlp.range",
    "mlp.limits",
    "residual.sensitivity",
    "residual.identity",
    "residual.range",
    "gelu.sensitivity",
    "gelu.symmetry",
    "gelu.limits",
    "gelu.tanh_distance",
    "silu.sensitivity",
    "silu.symmetry",
    "silu.limits",
    "feed_forward.sensitivity",
    "feed_forward.hidden_order",
    "feed_forward.range",
    "feed_forward.limits",
    "feed_forward.dropout",
    "swiglu.sensitivity",
    "swiglu.value_linear",
    "swiglu.hidden_order",
    "swiglu.range",
    "swiglu.limits",
    "mixture_of_experts.sensitivity",
    "mixture_of_experts.identical_experts",
    "mixture_of_experts.permutation",
    "mixture_of_experts.ties",
    "mixture_of_experts.unchosen",
    "mixture_of_experts.choice",
    "dropout.scale",
    "xavier_normal.variance",
    "xavier_normal.independence",
    "token_embedding.sensitivity",
    "token_embedding.lookup",
    "token_embedding.repeated",
    "token_embedding.range",
    "lm_head.sensitivity",
    "lm_head.linearity",
    "lm_head.one_hot",
    "lm_head.range",
    "sinusoidal_encoding.sensitivity",
    "sinusoidal_encoding.shift",
    "sinusoidal_encoding.offset",
    "rope.sensitivity",
    "rope.origin",
    "rope.relative",
    "rope.group",
    "rope.norm",
    "rope.pairings",
    "rope.scaling",
    "rope.far",
    "rope.pairing",
    "alibi_slopes.geometric",
    "alibi_slopes.any_heads",
    "alibi_bias.last_query",
    "alibi_bias.distance",
    "t5_relative_position_bucket.sensitivity",
    "t5_relative_position_bucket.monotone",
    "t5_relative_position_bucket.saturating",
    "t5_relative_position_bucket.exact_points",
    "t5_relative_position_bucket.directions",
]
"""Laws that a result too large by a thirty-second breaks."""

SPECIFIC: dict[str, Fault] = {
    **dict.fromkeys(TOO_LARGE, altered(more)),
    "token_embedding.gradient": gradient_of(1, more),
    "mixture_of_experts.range": instead(hidden_in_half),
    "rope.history": first_base,
    "t5_relative_position_bucket.layout": instead(as_it_lies),
    "dropout.rate": instead(fewer_dropped),
    "dropout.independence": known("DO-08", "dropout"),
    "dropout.generator": without("generator"),
    "xavier_normal.normality": instead(uniform),
    "xavier_normal.generator": without("generator"),
}
