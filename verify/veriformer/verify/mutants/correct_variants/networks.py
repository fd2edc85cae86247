"""Other ways to the layers that act on each position alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.formulas.base import widen
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.mutants.records import Variant, variant

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": F.gelu,
}
"""The activations by name."""

Generator = torch.Generator | None

# Activations


def _gelu_by_erfc(x: Tensor, approximate: str) -> Tensor:
    wide = widen(x)
    if approximate == "tanh":
        return _gelu_by_sigmoid(x, approximate)
    y: Tensor = 0.5 * wide * torch.special.erfc(-wide * math.sqrt(0.5))
    return y.to(x.dtype)


def _gelu_by_sigmoid(x: Tensor, approximate: str) -> Tensor:
    """Compute x Φ(x), or x σ(2 u), since (1 + tanh u) / 2 = σ(2 u)."""
    wide = widen(x)
    if approximate == "none":
        y: Tensor = wide * torch.special.ndtr(wide)
        return y.to(x.dtype)
    u = math.sqrt(2 / math.pi) * wide * (1 + 0.044715 * wide * wide)
    return (wide * torch.sigmoid(2 * u)).to(x.dtype)


def _gelu_in_dtype(x: Tensor, approximate: str) -> Tensor:
    """Round every operation to the dtype, as eager code does."""
    if approximate == "tanh":
        return _gelu_by_sigmoid(x, approximate)
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))


def _silu_in_dtype(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _gelu_fp64(x: Tensor, approximate: str) -> Tensor:
    return F.gelu(x.double(), approximate=approximate).to(x.dtype)


def _silu_quotient(x: Tensor) -> Tensor:
    wide = widen(x)
    return (wide / (1 + (-wide).clamp(max=80.0).exp())).to(x.dtype)


def _silu_by_tanh(x: Tensor) -> Tensor:
    wide = widen(x)
    return (wide * (0.5 + 0.5 * torch.tanh(0.5 * wide))).to(x.dtype)


def _silu_exp2(x: Tensor) -> Tensor:
    wide = widen(x).double()
    return (wide / (1 + torch.exp2(-wide.clamp(min=-700.0) / math.log(2)))).to(x.dtype)


# Losses and sums


def _mse_by_library(prediction: Tensor, target: Tensor) -> Tensor:
    error = F.mse_loss(widen(prediction), widen(target), reduction="none")
    return error.sum(-1).mean().to(prediction.dtype)


def _mse_by_inner_product(prediction: Tensor, target: Tensor) -> Tensor:
    e = (widen(prediction) - widen(target)).flatten()
    return (torch.dot(e, e) * (prediction.shape[-1] / e.numel())).to(prediction.dtype)


def _mse_of_samples(prediction: Tensor, target: Tensor) -> Tensor:
    """Compute the loss sample by sample."""
    rows = (widen(prediction) - widen(target)).reshape(-1, prediction.shape[-1])
    total = torch.zeros((), dtype=rows.dtype)
    for row in rows:
        total = total + (row * row).sum() / len(rows)
    return total.to(prediction.dtype)


def _residual_multiply_add(x: Tensor, fx: Tensor, scale: float) -> Tensor:
    return torch.addcmul(widen(x), widen(fx), torch.tensor(float(scale), dtype=widen(x).dtype)).to(x.dtype)


# Networks


def _layer(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w.mT, b)


def _network_by_library(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, activation: str, **_: Any) -> Tensor:
    wide, w1, b1, w2, b2 = (widen(t) for t in (x, w1, b1, w2, b2))
    return _layer(ACTIVATIONS[activation](_layer(wide, w1, b1)), w2, b2).to(x.dtype)


def _network_by_units(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, activation: str, **_: Any) -> Tensor:
    """Sum the network over hidden units, each with its row of W₂."""
    wide, w1, b1, w2, b2 = (widen(t) for t in (x, w1, b1, w2, b2))
    y = b2.expand(*x.shape[:-1], -1)
    for c in range(w1.shape[1]):
        y = y + ACTIVATIONS[activation](wide @ w1[:, c] + b1[c])[..., None] * w2[c]
    return y.to(x.dtype)


def _dropped_by_library(
    x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, activation: str, dropout_p: float, **chance: Any
) -> Tensor:
    wide, w1, b1, w2, b2 = (widen(t) for t in (x, w1, b1, w2, b2))
    h = ACTIVATIONS[activation](_layer(wide, w1, b1))
    return _layer(_bernoulli(h, dropout_p, **chance), w2, b2).to(x.dtype)


def _packed_gate(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    """Compute gate and value by a single product."""
    wide, w_gate, w_up, w_down = (widen(t) for t in (x, w_gate, w_up, w_down))
    gate, up = (wide @ torch.cat((w_gate, w_up), -1)).chunk(2, -1)
    return ((gate * torch.sigmoid(gate) * up) @ w_down).to(x.dtype)


def _gated_by_einsum(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    wide, w_gate, w_up, w_down = (widen(t) for t in (x, w_gate, w_up, w_down))
    gate, up = (torch.einsum("...d,df->...f", wide, w) for w in (w_gate, w_up))
    return torch.einsum("...f,fo->...o", up * F.silu(gate), w_down).to(x.dtype)


# Experts


_RENORMALISED = (
    "return rows, see, softmax(xp, xp.where(see, scores, -np.inf) if renormalised else scores)",
    "p = xp.where(see, softmax(xp, scores), 0)\n    return rows, see, p / xp.sum(p, axis=-1, keepdims=True)",
)
"""Edit of the mixture: the softmax over all, divided by what the chosen have of it."""

_BY_RANK = (
    "np.put_along_axis(chosen, order[..., :top_k], True, axis=-1)",
    "chosen = np.argsort(order, axis=-1) < top_k",
)
"""Edit of the mixture: an expert is chosen if fewer than k stand before it."""


def _token_by_token(x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, top_k: int) -> Tensor:
    """Apply each token's experts one after another."""
    rows, router, w1, b1, w2, b2 = (widen(t) for t in (x.reshape(-1, x.shape[-1]), router, w1, b1, w2, b2))
    answers = []
    for row in rows:
        scores = row @ router
        order = sorted(range(len(scores)), key=lambda e: -float(scores[e]))[:top_k]
        p = scores[order].softmax(-1)
        answers.append(sum(p[i] * (F.gelu(row @ w1[e] + b1[e]) @ w2[e] + b2[e]) for i, e in enumerate(order)))
    y = torch.stack(answers) if answers else rows.new_zeros(0, w2.shape[-1])
    return y.to(x.dtype).reshape(*x.shape[:-1], w2.shape[-1])


# Chance


def _bernoulli(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    """Draw a mask of numbers by ``bernoulli_`` and scale it at once."""
    if not training or p == 0:
        return x
    mask = torch.empty(x.shape, dtype=widen(x).dtype).bernoulli_(1 - p, generator=generator)
    return (widen(x) * (mask / (1 - p) if p < 1 else mask)).to(x.dtype)


def _by_indices(x: Tensor, p: float, training: bool, generator: Generator) -> Tensor:
    """Scatter the kept entries, found by index, into zeros."""
    if not training or p == 0:
        return x
    keep = torch.rand(x.numel(), dtype=torch.float64, generator=generator).ge(p).nonzero().flatten()
    kept = x.flatten()[keep] / (1 - p) if p < 1 else x.flatten()[keep]
    return torch.zeros(x.numel(), dtype=x.dtype).index_put((keep,), kept).reshape(x.shape)


def _from_uniform(n_in: int, n_out: int, generator: Generator) -> Tensor:
    """Draw normal numbers by Box and Muller's method."""
    u = 1 - torch.rand(2, n_in, n_out, dtype=torch.float64, generator=generator)
    z = (-2 * u[0].log()).sqrt() * (2 * math.pi * u[1]).cos()
    return (z * math.sqrt(2 / max(1, n_in + n_out))).to(torch.get_default_dtype())


def _in_place(n_in: int, n_out: int, generator: Generator) -> Tensor:
    return torch.empty(n_out, n_in).normal_(0.0, math.sqrt(2 / max(1, n_in + n_out)), generator=generator).mT


# Tables


def _one_hot(ids: Tensor, weight: Tensor) -> Tensor:
    return (F.one_hot(ids.long(), weight.shape[0]).to(widen(weight).dtype) @ widen(weight)).to(weight.dtype)


def _index_select(ids: Tensor, weight: Tensor) -> Tensor:
    rows = widen(weight).index_select(0, ids.long().flatten())
    return rows.to(weight.dtype).reshape(*ids.shape, weight.shape[1])


def _by_columns(h: Tensor, weight: Tensor) -> Tensor:
    return (widen(weight) @ widen(h)[..., None])[..., 0].to(h.dtype)


def _in_chunks(h: Tensor, weight: Tensor) -> Tensor:
    """Multiply by a part of the vocabulary at a time: few parts, since each rounds its share of the gradient of h."""
    size = max(2, weight.shape[0] // 3)
    return torch.cat([widen(h) @ part.mT for part in torch.split(widen(weight), size)], -1).to(h.dtype)


VARIANTS: tuple[Variant, ...] = (
    variant(
        "networks-base",
        "The bases of the mutants",
        {name: kernel(name) for name in ("mlp", "feed_forward", "swiglu", "mixture_of_experts", "residual", "lm_head")},
    ),
    variant(
        "activations-erfc",
        "GELU by the complementary error function, SiLU as a quotient",
        gelu=_gelu_by_erfc,
        silu=_silu_quotient,
    ),
    variant(
        "activations-sigmoid",
        "The tanh of GELU as a sigmoid, the sigmoid of SiLU as a tanh",
        gelu=_gelu_by_sigmoid,
        silu=_silu_by_tanh,
    ),
    variant(
        "activations-dtype",
        "Activations whose every operation is rounded to the dtype",
        gelu=_gelu_in_dtype,
        silu=_silu_in_dtype,
    ),
    variant("activations-fp64", "Activations in fp64, exponentials to the base 2", gelu=_gelu_fp64, silu=_silu_exp2),
    variant("silu-product", "SiLU as a product", silu=kernel("silu")),
    variant(
        "squares-library",
        "PyTorch's squared error, and its fused multiplication and addition",
        mse_loss=_mse_by_library,
        residual=_residual_multiply_add,
    ),
    variant(
        "squares-inner-product",
        "The squared error as an inner product, the residual in fp64",
        mse_loss=_mse_by_inner_product,
        residual=kernel("residual", dtype=torch.float64),
    ),
    variant("squares-one-by-one", "The squared error of one sample after another", mse_loss=_mse_of_samples),
    variant(
        "networks-library",
        "Networks by PyTorch's linear layers, gate and value in one product",
        mlp=_network_by_library,
        feed_forward=_dropped_by_library,
        swiglu=_packed_gate,
    ),
    variant(
        "networks-by-units",
        "Hidden units one after another, gates by einsum",
        mlp=_network_by_units,
        swiglu=_gated_by_einsum,
    ),
    variant("networks-fp64", "The MLP in fp64 throughout", mlp=kernel("mlp", dtype=torch.float64)),
    variant(
        "experts-renormalised",
        "The softmax over all experts, renormalised over the chosen, who are found by rank",
        mixture_of_experts=kernel("mixture_of_experts", _RENORMALISED, _BY_RANK),
    ),
    variant("experts-by-token", "Each token calls its experts by itself", mixture_of_experts=_token_by_token),
    variant(
        "chance-other-streams",
        "Dropout by Bernoulli's numbers, first weights by Box and Muller",
        dropout=_bernoulli,
        xavier_normal=_from_uniform,
    ),
    variant(
        "chance-other-layouts",
        "Dropout by the indices of survivors, first weights drawn in place and transposed",
        dropout=_by_indices,
        xavier_normal=_in_place,
    ),
    variant(
        "tables-one-hot",
        "Lookup as a one-hot product, logits by columns",
        token_embedding=_one_hot,
        lm_head=_by_columns,
    ),
    variant(
        "tables-in-chunks",
        "Lookup by index_select, logits for a part of the vocabulary at a time",
        token_embedding=_index_select,
        lm_head=_in_chunks,
    ),
    variant("lm-head-fp64", "Logits in fp64", lm_head=kernel("lm_head", dtype=torch.float64)),
)
