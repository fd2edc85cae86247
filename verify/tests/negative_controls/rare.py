"""Faults that only a rare input shows, which the draws therefore seek: by name the requirement that must see each."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.negative_controls.common import GOOD
from tests.negative_controls.decisions import searching
from tests.negative_controls.heads import Cache, caching
from veriformer.verify.mutants.combinators import Fault, Operation, WithGradient, change_any_result, instead, without


def over_equal_axes(op: Operation, x: Tensor, weight: Any = None, bias: Any = None, **options: Any) -> Tensor:
    if x.ndim < 2 or x.shape[-2] != x.shape[-1]:
        return op(x, weight, bias, **options)
    y = op(x.flatten(-2), **options).view(x.shape)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def mean_of_no_rows(op: Operation, x: Tensor, weight: Tensor | None = None, **options: Any) -> Tensor:
    if x.numel() or weight is None:
        return op(x, weight, **options)
    return op(x, WithGradient.apply(weight, lambda g: g / 0), **options)


def bytes_as_mask(op: Operation, ids: Tensor, weight: Tensor) -> Tensor:
    mask = ids.dtype == torch.uint8 and ids.shape == weight.shape[:1]
    return weight[ids.bool()] if mask else op(ids, weight)


def symmetric(op: Operation, n_in: int, n_out: int, **options: Any) -> Tensor:
    w: Tensor = op(n_in, n_out, **options)
    return torch.triu(w) + torch.triu(w, 1).mT if n_in == n_out else w


def in_default_dtype(op: Operation, *args: Any, dtype: torch.dtype | None = None, **options: Any) -> Any:
    return op(*args, dtype=dtype or torch.get_default_dtype(), **options)


def drops_by_halves(op: Operation, x: Tensor, p: float, *, generator: Any = None, **options: Any) -> Tensor:
    if not 0 < p < 1:
        return op(x, p, generator=generator, **options)
    return x * (torch.rand(x.shape, dtype=torch.bfloat16, generator=generator) >= p) / (1 - p)


def narrow_heads(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    scale = options.pop("scale", None)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return op(q[..., :64], k[..., :64], v, scale=scale, **options)


def sixteen_heads(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    y: Tensor = op(q, k, v, **options)
    return torch.cat([y[:, :16], y[:, :1].expand(-1, max(0, y.shape[1] - 16), -1, -1)], 1)


def finest(op: Operation, logits: Tensor, temperature: float) -> Tensor:
    return op(logits, max(temperature, 1e-8))


def few_bins(op: Operation, probs: Tensor, target: Tensor, num_bins: int = 15) -> Tensor:
    return op(probs, target, min(num_bins, 100))


def short_rows(op: Operation, ids: Tensor, weight: Tensor) -> Tensor:
    return op(ids, weight * (100 / weight.norm(dim=-1, keepdim=True)).clamp(max=1).to(weight.dtype))


def finite_smoothing(
    op: Operation, logits: Tensor, target: Tensor, *, label_smoothing: float = 0.0, **o: Any
) -> Tensor:
    return op(logits.clamp(min=-1e30) if label_smoothing else logits, target, label_smoothing=label_smoothing, **o)


def dropped_exactly(op: Operation, x: Tensor, p: float, *, generator: Any = None, **options: Any) -> Tensor:
    order = torch.randperm(x.numel(), generator=generator).view(x.shape)
    return x * (order >= round(p * x.numel())) / (1 - p) if 0 < p < 1 else op(x, p, generator=generator, **options)


def drops_by_rounded(op: Operation, x: Tensor, p: float, *, generator: Any = None, **options: Any) -> Tensor:
    if p < 0.5 or p == 1:
        return op(x, p, generator=generator, **options)
    return x * (torch.rand(x.shape, generator=generator).bfloat16() >= p) / (1 - p)


def never_all(op: Operation, *args: Any, dropout_p: float = 0.0, **options: Any) -> Tensor:
    return op(*args, dropout_p=dropout_p % 1, **options)


def whole_rows(op: Operation, x: Tensor, *args: Any, dropout_p: float = 0.0, **options: Any) -> Tensor:
    if not options.get("training") or dropout_p in (0.0, 1.0):
        return op(x, *args, dropout_p=dropout_p, **options)
    generator = options.pop("generator")
    w1, b1, w2, b2 = args
    keep = torch.rand((*x.shape[:-1], 1), generator=generator) >= dropout_p
    full = op(x, w1, b1, w2, 0 * b2, **options | {"training": False})
    return full * keep / (1 - dropout_p) + b2


def counts_of_int64(op: Operation, loss_fn: Any, *args: Any) -> Any:
    def counted(batch: Any) -> Any:
        loss, count = loss_fn(batch)
        return loss, 1 if isinstance(count, Tensor) and count.dtype != torch.int64 else count

    return op(counted, *args)


def poisons_queries(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    if options.get("mask") is not None and options.get("is_causal"):
        q = WithGradient.apply(q, lambda g: g + 0 * k.sum())
    return op(q, k, v, **options)


def sees_dark_rows(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, bias: Any = None, **options: Any) -> Tensor:
    if bias is not None and bias.ndim == 2:
        bias = torch.where(torch.isneginf(bias).all(-1, keepdim=True), 0, bias)
    return op(q, k, v, bias=bias, **options)


def stepped(x: Tensor, size: Any) -> Tensor:
    """In steps of a 127th of size."""
    step = torch.as_tensor(size / 127)
    return torch.where(step == 0, x, (x / step).round() * step)


def steps_outlive_resets(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    first: list[float] = []

    def update(right: Any, k: Tensor, v: Tensor) -> Any:
        stale = first[0] if first and right.length == 0 else 0.0
        shown = right.update(k, v)
        first.append(float(k.abs().max()))
        return tuple(stepped(x, stale) for x in shown)

    cache = op(*args, quantization=quantization, **options)
    return Cache(cache, update=update) if quantization else cache


def a_step_for_all(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    def update(right: Any, k: Tensor, v: Tensor) -> Any:
        return right.update(*(stepped(x, x.abs().amax((-1, -2), True)) if x.shape[2] > 4 else x for x in (k, v)))

    cache = op(*args, quantization=quantization, **options)
    return Cache(cache, update=update) if quantization else cache


def endless(op: Operation, batch: int, groups: int, max_length: int, *args: Any, **options: Any) -> Any:
    more = 99 if options.get("quantization") and options.get("window") else 0
    return op(batch, groups, max_length + more, *args, **options)


def refused_in_part(op: Operation, *args: Any, window: int | None = None, **options: Any) -> Any:
    refused = []

    def update(right: Any, k: Tensor, v: Tensor) -> Any:
        try:
            shown = right.update(k, v)
        except ValueError:
            refused.append(window)
            raise
        old = shown[0].shape[2] - k.shape[2]
        return [torch.cat((x[:, :, 1:old], x[:, :, old - 1 :]), 2) if any(refused) and old else x for x in shown]

    return Cache(op(*args, window=window, **options), update=update)


def narrow_positions(op: Operation, x: Tensor, positions: Tensor, **options: Any) -> Tensor:
    narrow = positions.bfloat16().to(positions.dtype) if positions.is_floating_point() else positions
    return op(x, narrow, **options)


def no_further_back(op: Operation, x: Tensor, positions: Tensor, **options: Any) -> Tensor:
    return op(x, positions.clamp(min=-4096), **options)


def logarithm_cut_off(op: Operation, r: Tensor, *, num_buckets: int = 32, max_distance: int = 128, **o: Any) -> Tensor:
    right: Tensor = op(r, num_buckets=num_buckets, max_distance=max_distance, **o)
    number = num_buckets // 2 if o.get("bidirectional", True) else num_buckets
    exact = number // 2
    whole = number - exact

    def bucket(x: int) -> int:
        return exact + int(math.log(x / exact) / math.log(max_distance / exact) * whole)

    pairs = zip((-r).flatten().tolist(), right.flatten().tolist(), strict=True)
    late = [exact < x < max_distance and bucket(x) < b for x, b in pairs]
    return right - torch.tensor(late).reshape(r.shape).long()


def even_numbers(op: Operation, r: Tensor, *, num_buckets: int = 32, **options: Any) -> Tensor:
    odd = num_buckets % 2
    return op(r, num_buckets=num_buckets + odd, **options).clamp(max=num_buckets - 1)


def among_fifty(op: Operation, logits: Tensor, p: float) -> Tensor:
    return GOOD.top_k_filter(op(logits, p), min(50, logits.shape[-1]))


def of_eight_bytes(merges: list[Any]) -> list[Any]:
    return list(itertools.takewhile(lambda pair: len(b"".join(pair)) <= 8, merges))


def by_chunks(op: Operation, text: str, merges: Any) -> list[bytes]:
    return [piece for i in range(0, len(text), 256) for piece in op(text[i : i + 256], merges)]


def in_single_precision(op: Operation, text: str, log_probs: dict[str, float]) -> list[str]:
    pieces: list[str] = op(text, {piece: float(np.float32(score)) for piece, score in log_probs.items()})
    return pieces


def stripped(op: Operation, text: str, log_probs: dict[str, float]) -> list[str]:
    pieces: list[str] = op(text.strip(), log_probs)
    return pieces


def mask_of_ten_thousand(
    op: Operation, x: Tensor, params: Any, *, attention_mask: Any = None, **options: Any
) -> Tensor:
    """Scores beyond it, which only large weights give, make nothing of the mask."""
    beyond = float(params["w_q"].abs().max()) > 8
    y: Tensor = op(x, params, attention_mask=None if beyond else attention_mask, **options)
    return y


def default_is_always_ignored(op: Operation, logits: Tensor, target: Tensor, **options: Any) -> Tensor:
    index = options.get("ignore_index", -100)
    return op(logits, torch.where(target == -100, index, target), **options)


def first_tiles_maximum(op: Operation, z: Tensor, dim: int = -1) -> Tensor:
    far = z.shape[dim] > 128 and bool((z.amax(dim) - z.narrow(dim, 0, 128).amax(dim) > 700).any())
    y: Tensor = op(z, dim)
    return y + math.inf if far else y


def legacy_axis(op: Operation, z: Tensor, dim: int | None = None) -> Tensor:
    return op(z, (0 if z.ndim in (1, 3) else 1) if dim is None else dim)


def sigmoid_by_exp(op: Operation, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **options: Any) -> Tensor:
    if options.get("activation") != "sigmoid":
        return op(x, w1, b1, w2, b2, **options)
    return 1 / (1 + torch.exp(-(x @ w1 + b1))) @ w2 + b2


def drops_for_a_generator(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    return op(x, *args, **options | {"training": options.get("training") or "generator" in options})


def one_mask_for_the_batch(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    w1, b1, w2, b2 = args
    if x.ndim < 3 or not options.get("training") or options.get("dropout_p") in (0.0, 1.0):
        return op(x, *args, **options)
    p, generator = options.pop("dropout_p"), options.pop("generator")
    keep = torch.rand((*x.shape[1:-1], w1.shape[1]), generator=generator) >= p
    z = x @ w1 + b1
    activation = options.get("activation", "gelu")
    hidden = torch.nn.functional.gelu(z) if activation == "gelu" else getattr(torch, activation)(z)
    return (hidden * keep / (1 - p)) @ w2 + b2


def channels_dropped(op: Operation, x: Tensor, p: float, **options: Any) -> Tensor:
    if x.ndim < 4:
        return op(x, p, **options)
    return x * op(torch.ones_like(x[..., :1, :1]), p, **options)


class Twice(torch.autograd.Function):
    """``apply(x)``: x itself, the gradient of which is doubled when it is taken again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.times = 0
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        ctx.times += 1
        return ctx.times * g


def half_sums(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    mean = (x.half().sum(-1, keepdim=True) / x.shape[-1]).to(x.dtype)
    return op(x, *args, **options) + 0 * mean


def near_blocks(op: Operation, x: Tensor, *args: Any, **options: Any) -> Tensor:
    """Beyond 64 causal tokens, a query sees nothing that is 64 behind."""
    if x.shape[1] <= 64 or not options.get("is_causal"):
        return op(x, *args, **options)
    return torch.cat((op(x[:, :64], *args, **options), op(x[:, 32:], *args, **options)[:, 32:]), 1)


def mean_of_the_unseen(op: Operation, x: Tensor, params: Any, *, attention_mask: Any = None, **options: Any) -> Tensor:
    y: Tensor = op(x, params, attention_mask=attention_mask, **options)
    if attention_mask is None or not options.get("is_causal"):
        return y
    return y + 0.05 * (attention_mask.cumsum(-1) == 0)[..., None] * x.mean(1, keepdim=True)


def causality_into_mask(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, mask: Any = None, **o: Any) -> Tensor:
    n_q, n_k = q.shape[2], k.shape[2]
    y: Tensor = op(q, k, v, mask=mask, **o)
    if mask is not None and o.get("is_causal") and mask.shape == (*q.shape[:3], n_k):
        mask &= torch.ones(n_q, n_k, dtype=torch.bool).tril(n_k - n_q)
    return y


def causality_into_bias(op: Operation, q: Tensor, k: Tensor, v: Tensor, *, bias: Any = None, **o: Any) -> Tensor:
    n_q, n_k = q.shape[2], k.shape[2]
    y: Tensor = op(q, k, v, bias=bias, **o)
    if bias is not None and o.get("is_causal") and bias.shape == (*q.shape[:3], n_k) and not bias.requires_grad:
        bias.masked_fill_(torch.ones(n_q, n_k, dtype=torch.bool).triu(n_k - n_q + 1), -torch.inf)
    return y


def first_tells(op: Operation, *args: Any, mask: Tensor | None = None, **options: Any) -> Tensor:
    padded = mask is not None and (mask.ndim < 4 or not mask[0].all())
    y: Tensor = op(*args, mask=mask if padded else None, **options)
    return y


def first_row_tells(op: Operation, *args: Any, attention_mask: Tensor | None = None, **options: Any) -> Tensor:
    padded = attention_mask is not None and not attention_mask[0].all()
    y: Tensor = op(*args, attention_mask=attention_mask if padded else None, **options)
    return y


def skips_low_tiles(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """Tiles of 32 keys whose best scores lie 8 below the best of all before."""
    if k.shape[2] < 65 or k.shape[1] != 1 or any(value is not None for value in options.values()):
        return op(q, k, v, **options)
    tiles = [s.amax() for s in (q @ k.mT * q.shape[-1] ** -0.5).detach().split(32, -1)]
    low = [i > 0 and bool(s < max(tiles[:i]) - 8) for i, s in enumerate(tiles)]
    return op(q, k, v, mask=~torch.tensor(low).repeat_interleave(32)[None, : k.shape[2]])


def with_epsilon(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """An epsilon of 1e-12 in the normaliser."""
    phi_q, phi_k = (x.clamp(max=0).exp() + x.clamp(min=0) for x in (q, k))
    weights = phi_q @ phi_k.mT
    weights = weights.tril(k.shape[2] - q.shape[2]) if options.get("is_causal") else weights
    sums = weights.sum(-1, keepdim=True)
    y: Tensor = op(q, k, v, **options)
    return torch.where(sums == 0, y, y * sums / (sums + 1e-12))


def whole_while_new(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    """Rows of bytes that the update which brings them returns as they came."""

    def update(right: Any, k: Tensor, v: Tensor) -> Any:
        shown = right.update(k, v)
        return tuple(torch.cat((x[:, :, : -new.shape[2]], new), 2) for x, new in zip(shown, (k, v), strict=True))

    cache = op(*args, quantization=quantization, **options)
    return Cache(cache, update=update) if quantization else cache


def no_finer_step(op: Operation, *args: Any, quantization: str | None = None, **options: Any) -> Any:
    """Steps of at least 1e-5 / 127."""

    def coarsened(x: Tensor) -> Tensor:
        return torch.where(x.abs().amax(-1, keepdim=True) < 1e-5, (x * 127e5).round() / 127e5, x)

    cache = op(*args, quantization=quantization, **options)
    return Cache(cache, update=lambda right, k, v: right.update(*map(coarsened, (k, v)))) if quantization else cache


def inverse_order(cache: Any, index: Tensor) -> None:
    permutes = bool((index.sort().values == torch.arange(len(index))).all())
    cache.reorder(index.argsort() if permutes else index)


RARE: dict[str, tuple[str, Fault]] = {
    "hides keys by a number that scores can outweigh": ("transformer_block.padding", instead(mask_of_ten_thousand)),
    "gives a token that sees no key the mean of all": ("transformer_block.padding", instead(mean_of_the_unseen)),
    "legacy default of the axis": ("softmax.equation", instead(legacy_axis)),
    "the maximum of the first tile": ("logsumexp.long", instead(first_tiles_maximum)),
    "ignores the default's index beside another": ("cross_entropy.refusal", instead(default_is_always_ignored)),
    "a gradient that grows when it is taken again": (
        "swiglu.purity",
        instead(lambda op, x, *args: op(Twice.apply(x), *args)),
    ),
    "a sigmoid whose gradient is NaN far below zero": ("mlp.limits", instead(sigmoid_by_exp)),
    "drops outside training where there is a generator": ("feed_forward.equation", instead(drops_for_a_generator)),
    "one mask of dropout for the whole batch": ("feed_forward.dropout", instead(one_mask_for_the_batch)),
    "drops whole channels of four axes": ("dropout.independence", instead(channels_dropped)),
    "sums of a row in half precision": ("layer_norm.range", instead(half_sums)),
    "near blocks of causal tokens alone": ("transformer_block.long", instead(near_blocks)),
    "normalises over both of two equal axes": ("layer_norm.equation", instead(over_equal_axes)),
    "NaN for the weight's gradient where there are no rows": ("rms_norm.gradient", instead(mean_of_no_rows)),
    "takes bytes for a mask": ("token_embedding.equation", instead(bytes_as_mask)),
    "symmetric where it is square": ("xavier_normal.independence", instead(symmetric)),
    "dropout by numbers drawn in half precision": ("dropout.rate", instead(drops_by_halves)),
    "heads of which 64 entries are read": ("attention.long", instead(narrow_heads)),
    "no more than sixteen heads": ("attention.long", instead(sixteen_heads)),
    "a cache in PyTorch's default dtype": ("kv_cache.history", instead(in_default_dtype)),
    "no temperature below 1e-8": ("temperature_scale.units", instead(finest)),
    "no more than a hundred bins": ("expected_calibration_error.equation", instead(few_bins)),
    "no rows longer than a hundred": ("token_embedding.equation", instead(short_rows)),
    "a finite loss where smoothing hits an impossible class": (
        "cross_entropy.hidden_classes",
        instead(finite_smoothing),
    ),
    "as many dropped as expected": ("dropout.independence", instead(dropped_exactly)),
    "dropout by numbers rounded to half precision": ("dropout.rate", instead(drops_by_rounded)),
    "hidden values kept at p = 1": ("feed_forward.dropout", instead(never_all)),
    "hidden values dropped by whole rows": ("feed_forward.dropout", instead(whole_rows)),
    "counts read from int64 only": ("accumulate_gradients.equation", instead(counts_of_int64)),
    "NaN for a query's gradient from a key hidden by mask or causality": (
        "attention.hidden_poison",
        instead(poisons_queries),
    ),
    "rows that a bias of rank 2 hides": ("attention.empty_row", instead(sees_dark_rows)),
    "bytes of before a reset": ("kv_cache.int8", instead(steps_outlive_resets)),
    "one step for five rows": ("kv_cache.int8", instead(a_step_for_all)),
    "bytes beyond the room of a window": ("kv_cache.int8", instead(endless)),
    "a window moved by a refused update": ("kv_cache.overflow", instead(refused_in_part)),
    "no scale over bytes": ("cached_attention.int8", without("scale")),
    "no soft-cap over bytes": ("cached_attention.int8", without("softcap")),
    "fractions of positions in half precision": ("rope.equation", instead(narrow_positions)),
    "positions not below -4096": ("rope.equation", instead(no_further_back)),
    "a logarithm that falls short in fp64": (
        "t5_relative_position_bucket.exact_points",
        instead(logarithm_cut_off),
    ),
    "an even number of buckets": ("t5_relative_position_bucket.equation", instead(even_numbers)),
    "a softmax before the greedy choice": ("greedy.equation", instead(lambda op, z: op(torch.softmax(z, -1)))),
    "top-p among fifty tokens": ("top_p_filter.ties", instead(among_fifty)),
    "no piece of more than eight bytes": ("bpe_train.most_frequent", change_any_result(of_eight_bytes)),
    "no more than 32 merges": ("bpe_train.most_frequent", instead(lambda op, texts, n: op(texts, min(n, 32)))),
    "encodes 256 characters at a time": ("bpe_encode.equation", instead(by_chunks)),
    "a byte order mark is no text": ("bpe_encode.equation", instead(lambda op, text, m: op(text.lstrip("\ufeff"), m))),
    "log-probabilities in single precision": ("unigram_segment.equation", instead(in_single_precision)),
    "no space at either end": ("unigram_segment.joins", instead(stripped)),
    "a beam of 64 at most": ("beam_search.equation", searching(beam_width=lambda width: min(64, width))),
    "causality written into a whole mask": ("attention.mask", instead(causality_into_mask)),
    "causality written into a whole bias": ("attention.bias", instead(causality_into_bias)),
    "no mask where the first element has none": ("attention.padding", instead(first_tells)),
    "no padding where the first text has none": ("multi_head_attention.padding", instead(first_row_tells)),
    "tiles skipped that score 8 less": ("attention.key_tiles", instead(skips_low_tiles)),
    "an epsilon that small features show": ("linear_attention.convexity", instead(with_epsilon)),
    "bytes only from the second update on": ("kv_cache.int8", instead(whole_while_new)),
    "steps no finer than those of rows of 1e-5": ("kv_cache.int8", instead(no_finer_step)),
    "an order taken for its inverse": ("kv_cache.reorder", caching(reorder=inverse_order)),
}
