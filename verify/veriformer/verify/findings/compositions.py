"""Operations put together from PyTorch's own, as its documentation and most public code write them out.

They are witnesses of practice: what they do for calls that are not ordinary is no fault of the code that does likewise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor

Operation = Callable[..., Any]

SOFTMAX_AND_PRODUCTS = "PyTorch's composition of softmax and products"
MASKED_BY_THE_LOWEST = "PyTorch's composition with the lowest number for what is hidden"
BY_ROOTS = "a composition with the root of the scale on both sides, as ONNX's reference has it,"
OVER_PROBABILITIES = "torch.nn.functional.cross_entropy over probabilities"
TIMES_A_MASK = "a composition that multiplies each loss by its mask"
BY_TWO_LOSSES = "a composition of two losses, as label smoothing is mostly written"
TOP_LEFT = "torch.nn.functional.scaled_dot_product_attention with is_causal"
BY_POWERS = "a composition with torch.tanh and torch.pow, as GPT-2's code has it"
BY_NORMALIZE = "a composition with torch.nn.functional.normalize"
IN_PLACE = "the published top_k_top_p_filtering, which fills the logits that it is given,"
OFF = "the published top_k_top_p_filtering, which takes a p of 0 for none,"
BY_TOPK = "a composition with torch.topk"
BY_SORT = "a composition with torch.sort and torch.cumsum"
BY_SMALLEST = "a composition with a smallest temperature, as gpt-fast's"
BY_SQUARES = "the root of a sum of squares in that dtype"
BY_CLAMP = "a composition with torch.clamp, by max_norm over a norm that is no less,"
BY_SOFTMAX = "torch.softmax of logits / temperature"


def compositions(operation: str, peer: Operation | None) -> Iterator[tuple[str, Operation]]:
    """Yield name and implementation of the usual compositions of an operation, called by the contract's names.

    peer: PyTorch's own implementation, which compositions of attention are made from.
    """
    if peer is not None and operation in ("attention", "multi_head_attention", "transformer_block"):
        yield SOFTMAX_AND_PRODUCTS, _over_composed_attention(peer, lowest=False)
        yield MASKED_BY_THE_LOWEST, _over_composed_attention(peer, lowest=True)
    if peer is not None and operation == "attention":
        yield BY_ROOTS, _over_composed_attention(peer, roots=True)
        yield TOP_LEFT, _aligned_top_left(peer)
    if operation == "cross_entropy":
        yield OVER_PROBABILITIES, _over_probabilities
        yield TIMES_A_MASK, partial(_over_probabilities, selected=False)
        yield BY_TWO_LOSSES, _of_two_losses
    if operation == "gelu":
        yield BY_POWERS, _gelu
    if operation == "feed_forward":
        yield BY_POWERS, _feed_forward
    if operation == "temperature_scale":
        yield BY_SOFTMAX, _over_temperature
        yield BY_SMALLEST, _over_smallest_temperature
    if operation == "clip_grad_norm":
        for added, wide in itertools.product((0.0, 1e-6), (False, True)):
            yield BY_SQUARES, partial(_clip_by_squares, added=added, wide=wide)
        yield BY_CLAMP, _clip_by_clamp
    if operation == "rms_norm":
        yield BY_NORMALIZE, _normalize
        yield BY_NORMALIZE, partial(_normalize, weight_first=True)
    if operation == "top_k_filter":
        yield BY_TOPK, _keep_top_k
        yield IN_PLACE, _filling(_keep_top_k)
    if operation == "top_p_filter":
        nuclei = [
            partial(_keep_top_p, before=before, sorted_by=sorted_by, mass=mass)
            for before, (sorted_by, mass) in itertools.product((torch.gt, torch.ge), _NUCLEI)
        ]
        for nucleus in nuclei:
            yield BY_SORT, nucleus
            yield IN_PLACE, _filling(nucleus)
        yield from ((OFF, _off_at_zero(nucleus)) for nucleus in nuclei)


def _over_composed_attention(function: Operation, *, lowest: bool = False, roots: bool = False) -> Operation:
    """Return a function of PyTorch's with attention computed as its documentation writes it out.

    lowest: whether what is hidden has the lowest finite score, as in most models, in place of −∞. roots: whether both
    factors of a score are multiplied by the root of the scale.
    """
    composed = partial(_attention, lowest=lowest, roots=roots)

    def call(**arguments: Any) -> Any:
        with mock.patch.object(F, "scaled_dot_product_attention", composed):
            return function(**arguments)

    return call


def _aligned_top_left(function: Operation) -> Operation:
    """Return attention of more queries than keys with causality from the first query on, as the operator has it. Of
    as many or fewer queries that is no practice but another mask."""

    def call(**arguments: Any) -> Any:
        q, k = arguments["q"], arguments["k"]
        if not arguments.get("is_causal") or q.shape[-2] <= k.shape[-2]:
            return function(**arguments)
        seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        mask = arguments.get("mask")
        return function(**{**arguments, "mask": seen if mask is None else seen & mask, "is_causal": False})

    return call


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    lowest: bool = False,
    roots: bool = False,
) -> Tensor:
    """Compute softmax(q kᵀ · scale + bias) v, composed from operators: another result where a query sees no key.

    PyTorch's operator gives zeros there. Here it is NaN, or with lowest (hidden scores at the lowest finite number) the
    mean of all values; with roots (√scale times q and k) all is NaN for a negative scale.
    """
    if enable_gqa:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    if roots:
        root = factor**0.5 if factor >= 0 else math.nan
        scores = (query * root) @ (key.transpose(-2, -1) * root)
    else:
        scores = query @ key.transpose(-2, -1) * factor
    hidden = torch.finfo(scores.dtype).min if lowest else -torch.inf
    if is_causal:
        seen = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, hidden)
    if attn_mask is not None:
        boolean = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, hidden) if boolean else scores + attn_mask
    return F.dropout(scores.softmax(-1), dropout_p) @ value


def _over_probabilities(
    *,
    logits: Tensor,
    target: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    selected: bool = True,
) -> Tensor:
    """Compute cross-entropy of class indices through one-hot rows: 0 · log 0 is NaN where a class has no probability.

    selected: whether losses of ignored targets are set to 0, rather than multiplied by 0, which leaves NaN.
    """
    if target.is_floating_point():
        kept, rows = torch.ones(logits.shape[:-1], dtype=torch.bool), target.to(logits.dtype)
    else:
        kept = target != ignore_index
        rows = F.one_hot(target.where(kept, 0).long(), logits.shape[-1]).to(logits.dtype)
    smoothed = (1 - label_smoothing) * rows + label_smoothing / logits.shape[-1]
    losses = -(smoothed * logits.log_softmax(-1)).sum(-1)
    losses = torch.where(kept, losses, 0.0) if selected else losses * kept
    return losses if reduction == "none" else losses.sum() / (kept.sum() if reduction == "mean" else 1)


def _of_two_losses(
    *,
    logits: Tensor,
    target: Tensor,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Compute (1 − α) nll + α / V Σ −log p, each reduced first: NaN where p = 0 (0 · ∞), or where a sum overflows."""
    log_probs, kept = logits.log_softmax(-1), target != ignore_index
    chosen = -log_probs.gather(-1, target.where(kept, 0).long()[..., None])[..., 0]
    found = [torch.where(kept, losses, 0.0) for losses in (chosen, -log_probs.sum(-1))]
    if reduction != "none":
        found = [losses.sum() / (kept.sum() if reduction == "mean" else 1) for losses in found]
    return (1 - label_smoothing) * found[0] + label_smoothing / logits.shape[-1] * found[1]


def _gelu(*, x: Tensor, approximate: str = "tanh") -> Tensor:
    """Compute x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³))), whose cube and its derivative overflow in half precision."""
    if approximate != "tanh":
        return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def _feed_forward(*, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, activation: str = "gelu") -> Tensor:
    """Compute act(x W₁ + b₁) W₂ + b₂ with the GELU above."""
    if not activation.startswith("gelu"):
        raise ValueError("activation: of GELU")
    approximate = "tanh" if activation == "gelu_tanh" else "none"
    return _gelu(x=x @ w1 + b1, approximate=approximate) @ w2 + b2


def _over_temperature(*, logits: Tensor, temperature: float) -> Tensor:
    """Compute softmax(z / T): NaN where z / T overflows."""
    return torch.softmax(logits / temperature, -1)


def _over_smallest_temperature(*, logits: Tensor, temperature: float) -> Tensor:
    """Compute softmax(z / max(T, 1e-5))."""
    return torch.softmax(logits / max(temperature, 1e-5), -1)


def _clip_by_squares(
    *, grads: Sequence[Tensor], max_norm: float, added: float, wide: bool
) -> tuple[list[Tensor], Tensor]:
    """Compute min(1, c / (√Σ g² + ε)) g, whose squares overflow. wide: whether tensors' sums are added in float32."""
    squares = [(g * g).sum() for g in grads]
    norm = torch.stack([x.float() if wide and x.dtype != torch.float64 else x for x in squares]).sum().sqrt()
    factor = torch.clamp(max_norm / (norm + added), max=1.0)
    return [g * factor.to(g.dtype) for g in grads], norm


def _clip_by_clamp(*, grads: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Compute c / max(‖g‖, c) g, a number divided by a tensor: PyTorch multiplies by the reciprocal.

    So the factor may be 1 less a rounding inside the ball, and is NaN with an infinite c.
    """
    norm = torch.stack([torch.linalg.vector_norm(g) for g in grads]).norm()
    factor = max_norm / norm.clamp(min=max_norm)
    return [g * factor for g in grads], norm


def _normalize(*, x: Tensor, weight: Tensor | None = None, eps: float = 0.0, weight_first: bool = False) -> Tensor:
    """Compute x / max(|x|, ε) · √d · γ, whose quotients are subnormal in long rows of half precision.

    weight_first: whether √d comes last.
    """
    normed: Tensor = F.normalize(x, dim=-1, eps=max(eps, 1e-12))
    root = x.shape[-1] ** 0.5
    factors = (1.0 if weight is None else weight, root)
    for factor in factors if weight_first else factors[::-1]:
        normed = normed * factor
    return normed


def _filling(keep: Operation) -> Operation:
    """Return a filter that writes its result into the logits."""

    def call(*, logits: Tensor, **given: Any) -> Tensor:
        return logits.copy_(keep(logits=logits, **given))

    return call


def _off_at_zero(keep: Operation) -> Operation:
    """Return a nucleus filter that keeps all logits where p is 0, which is the default of the first published one."""

    def call(*, logits: Tensor, p: float) -> Tensor:
        found: Tensor = logits.clone() if p == 0 else keep(logits=logits, p=p)
        return found

    return call


def _keep_top_k(*, logits: Tensor, k: int) -> Tensor:
    """Keep the logits not below the k-th largest: all ties with it are kept."""
    least = torch.topk(logits, min(k, logits.shape[-1]), -1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)


def _itself(z: Tensor) -> Tensor:
    return z


def _softmax(z: Tensor) -> Tensor:
    return z.softmax(-1)


def _log_softmax(z: Tensor) -> Tensor:
    return z.log_softmax(-1)


def _softmax_by_log(z: Tensor) -> Tensor:
    return z.log_softmax(-1).exp()


_NUCLEI: Sequence[tuple[Operation, Operation]] = (
    (_itself, _softmax),
    (_itself, _softmax_by_log),
    (_log_softmax, torch.exp),
    (_softmax, _itself),
)
"""By what tokens are sorted, logits, log-probabilities or probabilities, and how their probabilities come of that."""


def _keep_top_p(*, logits: Tensor, p: float, before: Operation, sorted_by: Operation, mass: Operation) -> Tensor:
    """Keep the logits of the largest probabilities until their sum reaches p, in the logits' own dtype.

    before: how the sum before a token compares with p where the token is dropped. sorted_by, mass: one of ``_NUCLEI``;
    scores that differ may have equal probabilities in half precision.
    """
    ordered, index = torch.sort(sorted_by(logits), -1, descending=True)
    of_tokens = mass(ordered)
    dropped = before(of_tokens.cumsum(-1) - of_tokens, p)
    dropped[..., 0] = False
    kept = logits.gather(-1, index).masked_fill(dropped, -torch.inf)
    return torch.full_like(logits, -torch.inf).scatter(-1, index, kept)
