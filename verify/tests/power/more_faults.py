"""Further faults that need two or three things at once, of operations and modules that the first table leaves out.

They were written before anything was changed for them, as those of the first table were.
"""

from __future__ import annotations

from typing import Any

import torch
from catalogue import HALVES, Call, change_gradient, change_steps, fault, list_parameters
from torch import Tensor

from veriformer.verify.mutants.staged_reference.model import Block, Decoder, Scene, Shape
from veriformer.verify.mutants.staged_reference.narrow import InHalf

# Scores and losses


@fault("of more than 64 samples wider than 64, features of an incomplete last tile of 64 do not count")
def mse_loss__tail_features_of_many(op: Call, y: Tensor, t: Tensor) -> Any:
    d = y.shape[-1] - y.shape[-1] % 64
    if y.ndim < 2 or y.shape[0] <= 64 or not d:
        return op(y, t)
    return op(y[..., :d], t[..., :d])


@fault("with a temperature of its own, halves over more than 256 classes: an incomplete last tile of 256 is not scaled")
def temperature_scale__tail_in_halves(op: Call, z: Tensor, temperature: float) -> Any:
    n = z.shape[-1] - z.shape[-1] % 256
    if z.dtype not in HALVES or not n or temperature == 1:
        return op(z, temperature)
    return torch.softmax(torch.cat((z[..., :n].float() / temperature, z[..., n:].float()), -1), -1).to(z.dtype)


# Layers


@fault("tanh, more than 128 hidden features and 32 rows: the first bias has no gradient from the 129th on")
def mlp__late_gradient_of_tanh(op: Call, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **o: Any) -> Any:
    if o.get("activation") == "tanh" and b1.shape[0] > 128 and x.numel() // x.shape[-1] > 32:

        def change(g: Tensor) -> Tensor:
            g[128:] = 0
            return g

        b1 = change_gradient(b1, change)
    return op(x, w1, b1, w2, b2, **o)


@fault("hidden features of an incomplete last tile of 64 have no first bias where the input is wider than 64")
def mlp__bias_of_tail_features(op: Call, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **o: Any) -> Any:
    n = b1.shape[0] - b1.shape[0] % 64
    if n and x.shape[-1] > 64:
        b1 = torch.cat((b1[:n], torch.zeros_like(b1[n:])))
    return op(x, w1, b1, w2, b2, **o)


@fault("a branch that is scaled, of more than 4096 numbers, is added as it is beyond the last multiple of 1024")
def residual__unscaled_tail(op: Call, x: Tensor, fx: Tensor, **o: Any) -> Any:
    y, n = op(x, fx, **o), x.numel() - x.numel() % 1024
    if o.get("scale", 1.0) == 1.0 or x.numel() <= 4096:
        return y
    return torch.cat((y.flatten()[:n], (x + fx).flatten()[n:])).view(x.shape)


@fault("more than 256 inputs and 256 outputs: the columns from the 257th on are the first again")
def xavier_normal__columns_again(op: Call, n_in: int, n_out: int, **o: Any) -> Any:
    w = op(n_in, n_out, **o)
    return w[:, torch.arange(n_out) % 256] if n_in > 256 and n_out > 256 else w


@fault("grouped heads and more than 32 tokens: padding in an incomplete last tile of 32 is seen")
def transformer_block__padding_in_last_tile(op: Call, x: Tensor, params: Any, **o: Any) -> Any:
    m, n = o.get("attention_mask"), x.shape[1] - x.shape[1] % 32
    if m is not None and n and (o.get("num_kv_heads") or o["num_heads"]) < o["num_heads"]:
        o["attention_mask"] = torch.cat((m[:, :n], torch.ones_like(m[:, n:])), 1)
    return op(x, params, **o)


@fault("pre-norm over more than 64 features and 32 tokens: the second bias has no gradient from the 65th on")
def transformer_block__gradient_of_wide_second_bias(op: Call, x: Tensor, params: Any, **o: Any) -> Any:
    if o.get("norm", "pre") == "pre" and x.shape[-1] > 64 and x.shape[0] * x.shape[1] > 32:

        def change(g: Tensor) -> Tensor:
            g[64:] = 0
            return g

        params = {**params, "b2": change_gradient(params["b2"], change)}
    return op(x, params, **o)


@fault("halves of more than 4096 numbers: beyond the last multiple of 1024 the gradient is not scaled")
def dropout__unscaled_gradient_tail(op: Call, x: Tensor, p: float, **o: Any) -> Any:
    n = x.numel() - x.numel() % 1024
    if x.dtype in HALVES and x.numel() > 4096 and o.get("training", True) and 0 < p < 1:
        x = change_gradient(x, lambda g: torch.cat((g.flatten()[:n], g.flatten()[n:] * (1 - p))).view(g.shape))
    return op(x, p, **o)


# Attention


@fault("bf16 cross-attention to more than 64 tokens in grouped heads: an incomplete last tile of 64 is left out")
def multi_head_attention__context_tail_in_bf16(op: Call, x: Tensor, *w: Tensor, **o: Any) -> Any:
    c, groups = o.get("context"), o.get("num_kv_heads") or o["num_heads"]
    n = c.shape[1] - c.shape[1] % 64 if c is not None else 0
    if c is not None and n and x.dtype is torch.bfloat16 and groups < o["num_heads"]:
        o["context"] = c[:, :n]
        if o.get("attention_mask") is not None:
            o["attention_mask"] = o["attention_mask"][:, :n]
    return op(x, *w, **o)


@fault("more keys than queries in more than 64 rows: a window wider than 32 shows one key more")
def causal_mask__wide_window_of_late_rows(op: Call, n_q: int, n_k: int, *, window: int | None = None) -> Any:
    y = op(n_q, n_k, window=window)
    if window is None or window <= 32 or n_q <= 64 or n_k <= n_q:
        return y
    return torch.cat((y[:64], op(n_q, n_k, window=window + 1)[64:]))


@fault("grouped heads: a second chunk of more than 16 tokens is scaled as by default")
def cached_attention__scale_of_second_chunk(op: Call, q: Tensor, k: Tensor, v: Tensor, cache: Any, **o: Any) -> Any:
    if cache.length and q.shape[2] > 16 and k.shape[1] < q.shape[1]:
        o.pop("scale", None)
    return op(q, k, v, cache, **o)


# Positions


@fault("another base: features beyond 128 have the default one at positions beyond 64")
def sinusoidal_encoding__base_of_wide_late(op: Call, n: int, d: int, **o: Any) -> Any:
    y = op(n, d, **o).clone()
    if o.get("base", 10000.0) != 10000.0 and d > 128 and n > 64:
        y[64:, 128:] = op(n, d)[64:, 128:]
    return y


@fault("more than 32 heads, not a power of two: from the ninth on, slopes between are the first of them again")
def alibi_slopes__many_between(op: Call, num_heads: int) -> Any:
    y, n = op(num_heads), 1 << (num_heads.bit_length() - 1) if num_heads > 0 else 0
    if num_heads <= 32 or num_heads - n <= 8:
        return y
    return torch.cat((y[:n], y[n:][torch.arange(num_heads - n) % 8]))


@fault("more than 32 buckets of one direction: distances from 256 on are all in the last but one")
def t5_relative_position_bucket__late_of_many(op: Call, r: Tensor, **o: Any) -> Any:
    y = op(r, **o)
    if o.get("bidirectional", True) or o.get("num_buckets", 32) <= 32 or o.get("max_distance", 128) <= 256:
        return y
    return torch.where(r <= -256, o["num_buckets"] - 2, y)


# Optimization


def _late_stay_of_many(optimizer: Any, before: list[Tensor]) -> None:
    optimizer.steps_taken = getattr(optimizer, "steps_taken", 0) + 1
    for p, old in list(zip(list_parameters(optimizer), before, strict=True))[8:]:
        if optimizer.steps_taken > 1 and p.numel() > 64:
            p.view(-1)[64:] = old.view(-1)[64:]


fault("from the second step on, entries beyond 64 stay in parameters from the ninth on")(
    change_steps("gradient_descent__late_entries_of_many", _late_stay_of_many)
)


@fault("half tensors of more than 1024 entries: the norm leaves out an incomplete last 256")
def clip_grad_norm__tail_in_halves(op: Call, grads: list[Tensor], max_norm: float) -> Any:
    long = [g.dtype in HALVES and g.numel() > 1024 for g in grads]
    if not any(long):
        return op(grads, max_norm)
    kept = [g.flatten()[: g.numel() - g.numel() % 256] if cut else g for g, cut in zip(grads, long, strict=True)]
    _, norm = op(kept, max_norm)
    factor = min(1.0, max_norm / float(norm)) if float(norm) else 1.0
    return [(g.double() * factor).to(g.dtype) for g in grads], norm


# Generation


@fault("more than four beams over more than 64 tokens: from the fourth step on only the first 64 are candidates")
def beam_search__late_candidates(op: Call, step: Call, start: Tensor, **o: Any) -> Any:
    def narrow(ids: Tensor) -> Tensor:
        found: Tensor = step(ids)
        if found.shape[-1] > 64 and o["beam_width"] > 4 and ids.shape[1] - len(start) >= 3 and o["eos"] < 64:
            found = torch.cat((found[:, :64], torch.full_like(found[:, 64:], -torch.inf)), 1)
        return found

    return op(narrow, start, **o)


# Whole models


class _LateLayer(Block):
    def forward(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        if layer == 1 and scene.kv_cache is not None and scene.see.shape[-1] > 12 and scene.see.shape[-2] == 1:
            see = scene.see.clone()
            see[..., 0] = False
            scene = Scene(see, scene.bias, scene.positions, scene.kv_cache)
        return super().forward(x, scene, layer)


class _Late(InHalf, Decoder):
    block = _LateLayer
    inner = torch.bfloat16


@fault("layers in bf16: the second does not see the first of more than 12 cached tokens in single steps")
def causal_lm__second_layer_forgets_first(op: Call) -> Any:
    return _Late(Shape(position="rope"))


class _TailSees(Block):
    def forward(self, x: Tensor, scene: Scene, layer: int) -> Tensor:
        n = x.shape[1] - x.shape[1] % 16
        if layer == 1 and n and scene.see.shape[-1] == x.shape[1] and scene.kv_cache is None:
            see = scene.see.clone()
            see[:, :, n:, n:] = True
            scene = Scene(see, scene.bias, scene.positions)
        return super().forward(x, scene, layer)


class _Tail(InHalf, Decoder):
    block = _TailSees
    inner = torch.bfloat16


@fault("layers in bf16: in the second, tokens of an incomplete last tile of 16 see each other")
def causal_lm__tail_of_second_layer(op: Call) -> Any:
    return _Tail(Shape(position="alibi"))


# Half precision, where a bound says nothing of long calls


@fault("fp16 rows longer than 128: the sum leaves out an incomplete last tile of 128")
def softmax__sum_without_tail_in_fp16(op: Call, z: Tensor, dim: int = -1) -> Any:
    n = z.shape[-1] - z.shape[-1] % 128 if z.ndim else 0
    if z.dtype is not torch.float16 or dim not in (-1, z.ndim - 1) or not n:
        return op(z, dim)
    wide = z.float()
    return (wide - wide[..., :n].logsumexp(-1, keepdim=True)).exp().to(z.dtype)


@fault("halves wider than 256: the mean of the rows is that of whole tiles of 128")
def layer_norm__mean_of_whole_tiles_in_halves(op: Call, x: Tensor, w: Any = None, b: Any = None, **o: Any) -> Any:
    n = x.shape[-1] - x.shape[-1] % 128
    if x.dtype not in HALVES or n < 256:
        return op(x, w, b, **o)
    wide = x.float()
    mean = wide[..., :n].mean(-1, keepdim=True)
    y = (wide - mean) * torch.rsqrt((wide - mean).square().mean(-1, keepdim=True) + o.get("eps", 1e-5))
    y = y if w is None else y * w.float()
    return (y if b is None else y + b.float()).to(x.dtype)


@fault("bf16 over more than 256 classes: those of an incomplete last tile of 256 are not in the sum")
def cross_entropy__classes_without_tail_in_bf16(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    n = z.shape[-1] - z.shape[-1] % 256 if z.ndim else 0
    if z.dtype is not torch.bfloat16 or not n or t.is_floating_point() or o.get("label_smoothing"):
        return op(z, t, **o)
    keep = torch.arange(z.shape[-1]) < n
    own = torch.nn.functional.one_hot(t.clamp(0, z.shape[-1] - 1), z.shape[-1]).bool()
    return op(torch.where(keep | own, z, torch.full_like(z, -1e4)), t, **o)


@fault("halves with more than 128 hidden features: an incomplete last tile of 128 does not reach the output")
def feed_forward__hidden_tail_in_halves(
    op: Call, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **o: Any
) -> Any:
    n = w1.shape[1] - w1.shape[1] % 128
    if x.dtype not in HALVES or not n:
        return op(x, w1, b1, w2, b2, **o)
    return op(x, w1, b1, torch.cat((w2[:n], torch.zeros_like(w2[n:]))), b2, **o)
