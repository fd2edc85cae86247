"""Token embeddings: taking rows of a table, and adding to them on the way back."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from veriformer.impl import checks
from veriformer.impl.derivatives import apply_autograd_function
from veriformer.impl.precision import upcast


def token_embedding(ids: Tensor, weight: Tensor) -> Tensor:
    r"""Look up the vector of each token.

    $$y_t = E_{\mathrm{id}_t}, \quad \partial E_v = \sum_{t : \mathrm{id}_t = v} g_t$$

    The sums over repeated tokens are formed in float32 for halves: how often a token occurs must not decide whether its
    gradient is finite.

    Shapes: `ids [...]` of any integer dtype, `weight [V, d]` → `[..., d]`. Dtypes: float64, float32, bfloat16, float16.
    Raises `ValueError` for ids outside [0, V), which is looked at on the CPU only, and for a table that is not
    `[V, d]` with `V ≥ 1`; `TypeError` for wrong dtypes. Equation 39.
    """
    check_table(weight)
    if checks.integers("ids", ids).device != weight.device:
        checks.raise_for("ids", f"device {weight.device}, where weight lives", ids.device, "move one of the two first")
    V = weight.shape[0]
    if checks.can_read_values(ids) and ids.device.type == "cpu" and bool(((ids < 0) | (ids.long() >= V)).any()):
        checks.raise_for(
            "ids", f"ids in [0, {V})", f"values from {int(ids.min())} to {int(ids.max())}", "check the vocabulary"
        )
    return look_up(ids, weight)


def look_up(ids: Tensor, weight: Tensor) -> Tensor:
    """Return the rows of `weight [V, d]` for ids that are known to be in [0, V)."""
    ids = ids.long()
    return F.embedding(ids, weight) if upcast(weight) is weight else apply_autograd_function(_Embedding, ids, weight)


def check_table(weight: object) -> None:
    """Refuse what is not a table `[V, d]` of at least one token."""
    table = checks.tensor("weight", weight)
    if table.ndim != 2 or table.shape[0] == 0:
        checks.raise_for(
            "weight", "shape [V, d] with V of 1 or more", f"shape {tuple(table.shape)}", "give it a row a token"
        )


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.like = weight.shape[0], weight.dtype
        return F.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor]:
        (ids,) = ctx.saved_tensors
        V, dtype = ctx.like
        return None, torch.ops.aten.embedding_dense_backward(upcast(g), ids, V, -1, False).to(dtype)
