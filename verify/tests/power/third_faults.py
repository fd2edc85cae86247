"""A third table of faults that need two or three things at once, written before what they measure was changed."""

from __future__ import annotations

from typing import Any

import torch
from catalogue import HALVES, CacheWrapper, Call, change_gradient, change_steps, fault, list_parameters
from torch import Tensor

from veriformer.verify.mutants.staged_reference.model import Block, Decoder, Scene, Shape
from veriformer.verify.mutants.staged_reference.narrow import InHalf

# Losses


@fault("smoothed, over more than 256 classes: classes beyond the 256th have no smoothing in the gradient of late rows")
def cross_entropy__smoothing_of_late_gradient(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    a, rows = o.get("label_smoothing", 0.0), z.numel() // max(1, z.shape[-1])
    if not a or t.is_floating_point() or z.shape[-1] <= 256 or rows <= 32 or o.get("reduction") != "sum":
        return op(z, t, **o)

    def change(g: Tensor) -> Tensor:
        late = g.view(rows, -1)[32:]
        late[:, 256:] += a / z.shape[-1] * (t.flatten()[32:, None] != o.get("ignore_index", -100))
        return g

    return op(change_gradient(z, change), t, **o)


@fault("another index is ignored, more than 64 rows: in an incomplete last tile of 64 the default one is")
def perplexity__index_of_last_tile(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    index, flat = o.get("ignore_index", -100), t.flatten().clone()
    n = flat.numel() - flat.numel() % 64
    late = flat[n:]
    if index == -100 or not n or index not in range(z.shape[-1]) or not (late == index).any():
        return op(z, t, **o)
    flat = torch.where(flat == index, -100, flat)
    flat[n:] = late
    return op(z.reshape(-1, z.shape[-1]), flat)


# Norms


@fault("no weight, rows wider than 128: an incomplete last tile of 16 rows has no gradient through the mean")
def layer_norm__mean_of_late_gradient(op: Call, x: Tensor, w: Any = None, b: Any = None, **o: Any) -> Any:
    rows = x.numel() // max(1, x.shape[-1])
    n = rows - rows % 16
    if w is not None or x.shape[-1] <= 128 or not n:
        return op(x, w, b, **o)

    def change(g: Tensor) -> Tensor:
        late = g.view(rows, -1)[n:]
        late += 0.1 * late.abs().mean(-1, keepdim=True)
        return g

    return op(change_gradient(x, change), w, b, **o)


@fault("bf16 batches of rank 3 and more: beyond the 32nd row of each, features beyond 64 have the first weights again")
def rms_norm__late_weights_in_bf16(op: Call, x: Tensor, weight: Any = None, **o: Any) -> Any:
    y = op(x, weight, **o)
    if x.dtype is not torch.bfloat16 or x.ndim < 3 or weight is None or x.shape[-1] <= 64 or x.shape[-2] <= 32:
        return y
    again = op(x, weight[torch.arange(len(weight)) % 64], **o)
    return torch.cat((y[..., :32, :], again[..., 32:, :]), -2)


# Optimizers


def _late_take_all_steps(optimizer: Any, before: list[Tensor]) -> None:
    optimizer.steps_taken = getattr(optimizer, "steps_taken", 0) + 1
    for p in list_parameters(optimizer)[8:]:
        state = optimizer.state.get(p, {})
        if "beta_products" in state and p.numel() > 4:
            state["beta_products"] = tuple(b**optimizer.steps_taken for b in optimizer.param_groups[0]["betas"])


fault("parameters from the ninth on, of more than four entries, count the steps that they were left out of")(
    change_steps("adamw__late_parameters_count_all_steps", _late_take_all_steps)
)


def _strided_tail_forgets(optimizer: Any, before: list[Tensor]) -> None:
    for p in list_parameters(optimizer):
        for name, state in optimizer.state.get(p, {}).items():
            if isinstance(state, Tensor) and state.shape == p.shape and p.ndim == 2 and p.numel() > 256:
                state = state.clone()
                state[-1, -(p.shape[-1] % 64 or 64) :] = 0
                optimizer.state[p][name] = state


fault("in matrices of more than 256 entries the last incomplete tile of the last row forgets its velocity")(
    change_steps("sgd_momentum__last_tile_of_matrices_forgets", _strided_tail_forgets)
)


# Caches


class _Windowed8(CacheWrapper):
    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        late = self.right.length >= 32
        k, v = super().update(k, v)
        if late and self.options.get("quantization") and self.options.get("window") is not None and self.heads > 1:
            v = torch.cat((v[:, :-1], v[:, -1:].roll(1, 2)), 1)
        return k, v


@fault("bytes in a window: from 32 tokens on the values of the last of several heads are those of the token before")
def kv_cache__values_of_last_head_in_window(op: Call, *sizes: int, **options: Any) -> Any:
    return _Windowed8(*sizes, **options)


@fault("a soft-cap beside a scale: chunks of more than 8 tokens after more than 32 in wide heads are capped unscaled")
def cached_attention__cap_before_scale(op: Call, q: Tensor, k: Tensor, v: Tensor, cache: Any, **o: Any) -> Any:
    given = o.get("softcap") is not None and o.get("scale") is not None
    if given and cache.length > 32 and q.shape[2] > 8 and q.shape[-1] > 32:
        o["softcap"] = o["softcap"] * abs(o["scale"]) * q.shape[-1] ** 0.5
    return op(q, k, v, cache, **o)


# Positions


@fault("half pairing with a scaling, features beyond 64: positions of the second element on are not scaled")
def rope__scaling_of_first_element(op: Call, x: Tensor, positions: Tensor, **o: Any) -> Any:
    y = op(x, positions, **o)
    if o.get("scaling") is None or o.get("pairing") != "half" or x.ndim < 3 or x.shape[0] < 2 or x.shape[-1] <= 64:
        return y
    o.pop("scaling")
    return torch.cat((y[:1], op(x, positions, **o)[1:]))


@fault("halves, more than 16 heads: beyond 128 keys the slopes of heads from the 17th on are rounded to 8 bits")
def alibi_bias__late_slopes_in_bytes(op: Call, num_heads: int, n_q: int, n_k: int) -> Any:
    y = op(num_heads, n_q, n_k)
    if torch.get_default_dtype() not in HALVES or num_heads <= 16 or n_k <= 128:
        return y
    slopes = y[16:].double() / (torch.arange(n_q)[:, None] + n_k - n_q - torch.arange(n_k)).abs().clamp(min=1)
    wrong = (y[16:].double() * ((slopes * 256).round() / 256 / slopes).nan_to_num(1.0)).to(y.dtype)
    return torch.cat((y[:16], wrong))


# Whole models


class _PaddedCache(Decoder):
    def positions(self, ids: Tensor, past: int, mask: Any, documents: Any) -> Tensor:
        p = super().positions(ids, past, mask, documents)
        if mask is None or past <= 12 or ids.shape[1] != 1:
            return p
        return torch.arange(past, past + 1).expand_as(ids)


@fault("single steps after more than 12 cached tokens: padding on the left counts as positions")
def causal_lm__late_positions_beside_padding(op: Call) -> Any:
    return _PaddedCache(Shape(position="learned"))


class _SharedTail(Block):
    def forward(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        y: Tensor = super().forward(x, scene, layer)
        n = scene.see.shape[-1]
        if layer == 0 or scene.kv_cache is not None or x.shape[0] < 3 or n <= 10:
            return y
        return torch.cat((y[:2], torch.cat((y[2:, :10], y[1:2, 10:].expand_as(y[2:, 10:])), 1)))


class _Shared(InHalf, Decoder):
    block = _SharedTail
    inner = torch.bfloat16


@fault("layers in bf16: in the second, elements from the third on have what the second one has beyond ten tokens")
def causal_lm__late_elements_share_tail(op: Call) -> Any:
    return _Shared(Shape(position="alibi"))
