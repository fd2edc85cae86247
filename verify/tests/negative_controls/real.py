"""Faults as real projects had them: by name the requirement that must see each, and the dtype if one alone does."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import GOOD
from tests.negative_controls.heads import Cache
from veriformer.verify.mutants.combinators import Fault, Operation, change_arguments, instead


def experts_in_a_byte(op: Operation, x: Tensor, router: Tensor, *args: Any, **options: Any) -> Tensor:
    """Beyond the 256th no expert is asked."""
    y: Tensor = op(x, torch.cat((router[:, :256], 0 * router[:, 256:] - 1e3), 1), *args, **options)
    return y


def chosen_by_16_bits(op: Operation, logits: Tensor) -> Tensor:
    y: Tensor = op(logits)
    return y % 2**16


def by_bits(op: Operation, logits: Tensor) -> Tensor:
    """Zeros of one sign above those of the other."""
    y: Tensor = op(torch.where((logits == 0) & logits.signbit(), -(2.0**-100), logits))
    return y


def reaches_p(op: Operation, logits: Tensor, p: float) -> Tensor:
    """Fails where the probabilities, as they are added up, stay below p."""
    if 0.999999 < p < 1:
        total = logits.softmax(-1).cumsum(-1)[..., -1:]
        logits.gather(-1, torch.where(total < p, logits.shape[-1], 0))
    y: Tensor = op(logits, p)
    return y


def forgets_the_fallen(op: Operation, texts: list[str], num_merges: int) -> list[tuple[bytes, bytes]]:
    """A pair whose number a merge has lowered is not looked at again."""
    merges = op(texts, 0)
    words, lowered = [[bytes([byte]) for byte in text.encode()] for text in texts], set()
    while len(merges) < num_merges:
        before = Counter(pair for word in words for pair in pairwise(word))
        left = [pair for pair in before if pair not in lowered]
        if not left:
            break
        merges.append(max(left, key=before.__getitem__))
        words = [GOOD.bpe_encode(b"".join(word).decode(), merges) for word in words]
        after = Counter(pair for word in words for pair in pairwise(word))
        lowered |= {pair for pair in before if 0 < after[pair] < before[pair]}
    return merges


def one_near_zero(op: Operation, x: Tensor, **options: Any) -> Tensor:
    """Φ is 1, not a half, at the smallest numbers."""
    y: Tensor = op(x, **options)
    return torch.where(x.abs() < 1e-5, x, y)


def rate_in_a_byte(op: Operation, *args: Any, dropout_p: float = 0.0, **options: Any) -> Tensor:
    """Keep entries with a probability in steps of 1/256."""
    kept = (math.floor((1 - dropout_p) * 255) + 1) / 256
    y: Tensor = (
        op(*args, dropout_p=1 - kept, **options) if 0 < dropout_p < 1 else op(*args, dropout_p=dropout_p, **options)
    )
    return y


def rate_in_a_byte_alone(op: Operation, *args: Any, dropout_p: float = 0.0, **options: Any) -> Tensor:
    """Keep entries with a probability in steps of 1/256, and scale as if it were exact."""
    y = rate_in_a_byte(op, *args, dropout_p=dropout_p, **options)
    kept = (math.floor((1 - dropout_p) * 255) + 1) / 256
    return y * (kept / (1 - dropout_p)) if 0 < dropout_p < 1 and options.get("training") else y


def zero_for_no_maximum(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """From the right, tiles of 128 keys: where the first is hidden the maximum so far is 0, and stays so."""
    y: Tensor = op(q, k, v, **options)
    n_q, n_k = q.shape[2], k.shape[2]
    if not options.get("is_causal") or n_k <= 128:
        return y
    blind = torch.arange(n_q) + n_k - n_q < (n_k - 1) // 128 * 128
    low = (q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT * q.shape[-1] ** -0.5).amax((-1,)) < -110
    return torch.where((blind & low)[..., None], 0 * y, y)


def folded_batch(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """Of few queries over many keys, parts are put together as if there were one element in the batch."""
    y: Tensor = op(q, k, v, **options)
    return y[:1].expand_as(y) if q.shape[2] < 3 and k.shape[2] > 256 else y


def lost_splits(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """NaN for one query whose first 128 keys are hidden."""
    y: Tensor = op(q, k, v, **options)
    mask, window = options.get("mask"), options.get("window")
    hidden = k.shape[2] > 256 and (window is not None or (mask is not None and not mask[..., :128].any()))
    return y * torch.nan if q.shape[2] == 1 and hidden else y


def small_groups(op: Operation, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    if q.shape[2] == 1 and k.shape[1] and q.shape[1] > 16 * k.shape[1]:
        raise RuntimeError("more than 16 heads to a group")
    y: Tensor = op(q, k, v, **options)
    return y


def in_whole_tiles(op: Operation, *args: Any, **options: Any) -> Any:
    """A batch above 32 that is no multiple of it: what comes token by token is lost beyond."""

    def update(right: Any, k: Tensor, v: Tensor) -> Any:
        edge = k.shape[0] // 32 * 32 if k.shape[0] > 32 and k.shape[2] == 1 else k.shape[0]
        return right.update(*(torch.cat((x[:edge], 0 * x[edge:])) for x in (k, v)))

    return Cache(op(*args, **options), update=update)


def logarithms_in_fp32(
    op: Operation, r: Tensor, *, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    y: Tensor = op(r, bidirectional=bidirectional, num_buckets=num_buckets, max_distance=max_distance)
    number = num_buckets // 2 if bidirectional else num_buckets
    exact, distance = number // 2, r.abs().long()
    steps = torch.log(distance.clamp(min=1).float() / exact) / math.log(max_distance / exact) * (number - exact)
    far = (exact + steps.to(torch.int64)).clamp(max=number - 1)
    ahead = (r > 0).long() * number if bidirectional else 0
    counts = distance >= exact if bidirectional else (-r >= exact)
    return torch.where(counts, far + ahead, y)


REAL: dict[str, tuple[str, Fault]] = {
    "experts counted in a byte": ("mixture_of_experts.long", instead(experts_in_a_byte)),
    "tokens counted in 16 bits": ("greedy.long", instead(chosen_by_16_bits)),
    "zeros in the order of their bits": ("greedy.first", instead(by_bits)),
    "more mass than there is": ("top_p_filter.equation", instead(reaches_p)),
    "a heap that loses what has fallen": ("bpe_train.most_frequent", instead(forgets_the_fallen)),
    "no half at the smallest numbers": ("gelu.symmetry", instead(one_near_zero)),
    "probabilities in steps of 1/256": ("attention.dropout_rate", instead(rate_in_a_byte_alone)),
    "a maximum of 0 where a tile is hidden": ("attention.long_windows", instead(zero_for_no_maximum)),
    "parts put together for one batch": ("attention.decoding", instead(folded_batch)),
    "parts that see nothing": ("attention.decoding", instead(lost_splits)),
    "at most sixteen heads to a group": ("attention.decoding", instead(small_groups)),
    "a batch in whole tiles": ("kv_cache.long", instead(in_whole_tiles)),
    "logarithms that fall short": ("t5_relative_position_bucket.exact_points", instead(logarithms_in_fp32)),
}


def rounded_bias(op: Operation, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **options: Any) -> Tensor:
    """The product is rounded before its bias is added."""
    y: Tensor = op(x, w1, b1, w2, torch.zeros_like(b2), **options)
    return y + b2


def rounded_stream(op: Operation, x: Tensor, params: Any, **options: Any) -> Tensor:
    """The stream is rounded between the branches."""
    y: Tensor = op(x, params, **options)
    heads = {"num_heads": options["num_heads"], "num_kv_heads": options.get("num_kv_heads")}
    attended = GOOD.multi_head_attention(x, *(params[f"w_{name}"] for name in "qkvo"), **heads)
    return y + 0 * (x + attended)


def narrow_labels(*args: Any, **options: Any) -> Any:
    logits, labels = args
    return (logits, labels.to(logits.dtype).long().clamp(max=logits.shape[-1] - 1)), options


def narrow_ids(ids: Tensor, weight: Tensor) -> Any:
    return (ids.to(weight.dtype).long().clamp(max=len(weight) - 1), weight), {}


def narrow_choice(op: Operation, logits: Tensor) -> Tensor:
    y: Tensor = op(logits)
    return y.to(logits.dtype).nan_to_num(posinf=0.0).long()


def narrow_distances(op: Operation, num_heads: int, n_q: int, n_k: int) -> Tensor:
    op(num_heads, n_q, n_k)
    slopes: Tensor = GOOD.alibi_slopes(num_heads)
    places = torch.arange(n_k).to(slopes.dtype)
    last = torch.arange(n_k - n_q, n_k).to(slopes.dtype)
    return -slopes[:, None, None] * (last[:, None] - places).abs()


NARROW: dict[str, tuple[str, Fault, str]] = {
    "a bias after rounding": ("feed_forward.range", instead(rounded_bias), "fp16"),
    "a stream that is rounded": ("transformer_block.range", instead(rounded_stream), "fp16"),
    "labels in half precision": ("cross_entropy.far_classes", change_arguments(narrow_labels), "bf16"),
    "targets in half precision": ("perplexity.far_classes", change_arguments(narrow_labels), "fp16"),
    "masked labels in half precision": ("masked_lm_loss.far_classes", change_arguments(narrow_labels), "bf16"),
    "ids in half precision": ("token_embedding.long", change_arguments(narrow_ids), "bf16"),
    "a choice in half precision": ("greedy.long", instead(narrow_choice), "bf16"),
    "distances in half precision": ("alibi_bias.long", instead(narrow_distances), "bf16"),
}
