"""Small faults of decisions, generation and text, one for each law that must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.negative_controls.common import known, shifted
from tests.negative_controls.scores import short_numbers
from veriformer.verify.mutants.combinators import (
    Fault,
    Operation,
    change_any_result,
    change_arguments,
    gradient_of,
    instead,
)


def flat(x: Tensor) -> Tensor:
    return x if x.is_contiguous() else x.as_strided(x.shape, torch.empty(x.shape).stride())


def sums_past_one(y: Tensor) -> Tensor:
    return y + 0.0625


def squared_alpha(op: Operation, target: Tensor, num_classes: int, alpha: float) -> Tensor:
    return op(target, num_classes, alpha * alpha)


def kinder_to_the_first(y: Tensor) -> Tensor:
    return torch.cat([y[..., :1] * 1.5, y[..., 1:]], -1)


def absolute(op: Operation, logits: Tensor, temperature: float) -> Tensor:
    return op(logits, temperature + 0.25)


def reversed_order(op: Operation, logits: Tensor, temperature: float) -> Tensor:
    return op(-logits, temperature)


def lukewarm(op: Operation, logits: Tensor, temperature: float) -> Tensor:
    return op(logits, min(max(temperature, 0.05), 50.0))


def one_bin_more(op: Operation, probs: Tensor, target: Tensor, *, num_bins: int = 15) -> Tensor:
    return op(probs, target, num_bins=num_bins + 1)


def doubled(x: Tensor) -> Tensor:
    return 2 * x


def never_certain(op: Operation, probs: Tensor, target: Tensor, **options: Any) -> Tensor:
    return op(probs.clamp(max=0.875), target, **options)


def by_order(op: Operation, probs: Tensor, target: Tensor, **options: Any) -> Tensor:
    return op(probs[:1], target[:1], **options) if target.ndim else op(probs, target, **options)


def later_class(op: Operation, probs: Tensor, target: Tensor, **options: Any) -> Tensor:
    return op(probs.flip(-1), probs.shape[-1] - 1 - target, **options)


def all_count(op: Operation, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return op(logits, labels, **options) + 0.05 * logits.mean()


def by_position(op: Operation, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return op(logits.roll(1, 0), labels, **options) if labels.ndim else op(logits, labels, **options)


def over_all(op: Operation, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
    return op(logits, labels, **options) * (labels != -100).double().mean().to(logits.dtype)


def naive_loss(op: Operation, logits: Tensor, labels: Tensor, **options: Any) -> Tensor:
    e = logits.exp()
    return op((e / e.sum(-1, keepdim=True)).log(), labels, **options)


def normalised(op: Operation, logits: Tensor, *args: Any) -> Tensor:
    return op(logits, *args).log_softmax(-1)


def other_way(op: Operation, logits: Tensor, k: int) -> Tensor:
    """Odd numbers keep the smallest."""
    return op(logits, k) if k % 2 else -(op(-logits, k).masked_fill(op(-logits, k) == -torch.inf, torch.inf))


def above_zero(op: Operation, logits: Tensor, *args: Any) -> Tensor:
    return op(logits.masked_fill(logits < 0, -64.0) if bool((logits > 0).any()) else logits, *args)


def first_alone(op: Operation, logits: Tensor, *args: Any) -> Tensor:
    """The last token is never kept, where there are others."""
    z = logits.clone()
    z[..., -1:] = z[..., -1:] - 1000 if z.shape[-1] > 1 else z[..., -1:]
    return torch.where(op(z, *args) > -torch.inf, logits, -torch.inf)


def before_crossing(op: Operation, logits: Tensor, p: float) -> Tensor:
    return op(logits, p / 2)


def emptied(op: Operation, logits: Tensor, p: float) -> Tensor:
    return op(logits, p).masked_fill(torch.tensor(1 - p == 1.0), -torch.inf)


def not_quite_all(op: Operation, logits: Tensor, p: float) -> Tensor:
    return op(logits, min(p, 0.99))


def largest_size(op: Operation, logits: Tensor) -> Tensor:
    return op(logits.abs())


def first_tile(op: Operation, logits: Tensor) -> Tensor:
    return op(logits[..., :512])


def last_but_one(op: Operation, logits: Tensor) -> Tensor:
    return op(torch.cat([logits[..., :-1], logits[..., -1:] - 100], -1))


def searching(**changes: Callable[[Any], Any]) -> Fault:
    """Beam search with some of its options changed."""

    def broken(op: Operation, step: Any, start: Tensor, **options: Any) -> Any:
        return op(step, start, **{k: changes[k](v) if k in changes else v for k, v in options.items()})

    return instead(broken)


def scored(change: Callable[[Any], Any]) -> Fault:
    return change_any_result(lambda found: (found[0], change(found[1])))


def greedily_unfinished(op: Operation, step: Any, start: Tensor, **options: Any) -> Any:
    """Without an end, so that every text is as long as allowed or goes on behind it."""
    return op(step, start, **{**options, "eos": -1})


def least_likely(op: Operation, step: Any, start: Tensor, **options: Any) -> Any:
    return op(lambda ids: step(ids).flip(-1), start, **options)


def possible(op: Operation, step: Any, start: Tensor, **options: Any) -> Any:
    return op(lambda ids: step(ids).masked_fill(step(ids) == -torch.inf, 0.0), start, **options)


def forgets_the_first_id(op: Operation, step: Any, start: Tensor, **options: Any) -> Any:
    return op(lambda ids: step(ids) - torch.eye(step(ids).shape[-1])[0].to(step(ids).dtype), start, **options)


def scribbles_on_start(op: Operation, step: Any, start: Tensor, **options: Any) -> Any:
    found = op(step, start, **options)
    start.zero_().add_(1)
    return found


def modifies(key: int) -> Fault:
    def broken(op: Operation, *args: Any) -> Any:
        result = op(*args)
        given = args[key]
        if isinstance(given, dict):
            given["new"] = -1.0
        else:
            given.append(("x", "y"))
        return result

    return instead(broken)


def as_text(pieces: Any) -> Any:
    return tuple(pieces)


def from_the_right(op: Operation, text: str, merges: Any) -> list[bytes]:
    turned = [(b[::-1], a[::-1]) for a, b in merges]
    return [piece[::-1] for piece in op(text[::-1], turned)][::-1]


def one_merge_left(op: Operation, text: str, merges: Any) -> list[bytes]:
    return op(text, merges[:-1])


def later_rank(op: Operation, text: str, merges: Any) -> list[bytes]:
    return op(text, list(dict.fromkeys(merges[::-1]))[::-1])


def lossy(pieces: list[Any]) -> list[Any]:
    return pieces[:-1] if len(pieces) > 1 else pieces


def one_text(op: Operation, texts: list[str], num_merges: int) -> Any:
    return op(["".join(texts)], num_merges)


def reversed_merges(merges: list[Any]) -> list[Any]:
    return merges[::-1]


def by_budget(op: Operation, texts: list[str], num_merges: int) -> Any:
    return op(texts, num_merges)[-1:] * min(1, num_merges) + op(texts, num_merges)[:-1]


def without_a(op: Operation, texts: list[str], num_merges: int) -> Any:
    return op([text.replace("a", "") for text in texts], num_merges)


def something(op: Operation, texts: list[str], num_merges: int) -> Any:
    return op(texts, num_merges) or [(b"a", b"b")][:num_merges]


def particular(op: Operation, texts: list[str], num_merges: int) -> Any:
    if type(num_merges) is not int and not isinstance(num_merges, bool):
        raise TypeError("num_merges: expected an int")
    return op(texts, num_merges)


def longest_match(op: Operation, text: str, log_probs: dict[str, float]) -> list[str]:
    pieces: list[str] = []
    while text:
        known = [p for p in log_probs if text.startswith(p) and log_probs[p] > float("-inf")]
        pieces.append(max(known, key=len, default=text[:1]))
        text = text[len(pieces[-1]) :]
    return pieces


def by_probability(op: Operation, text: str, log_probs: dict[str, float]) -> list[str]:
    """Of what underflows nothing is better than anything else."""
    return op(text, log_probs) if sum(map(len, text)) < 100 else list(text)


SPECIFIC: dict[str, Fault] = {
    "smooth_labels.simplex": change_any_result(sums_past_one),
    "smooth_labels.mixture": instead(squared_alpha),
    "smooth_labels.relabelling": change_any_result(kinder_to_the_first),
    "temperature_scale.shift": known("SM-02", "temperature_scale"),
    "temperature_scale.units": instead(absolute),
    "temperature_scale.order": instead(reversed_order),
    "temperature_scale.conservation": gradient_of(0, shifted),
    "temperature_scale.cold": instead(lukewarm),
    "temperature_scale.hot": instead(lukewarm),
    "temperature_scale.range": known("SM-02", "temperature_scale"),
    "expected_calibration_error.edges": instead(one_bin_more),
    "expected_calibration_error.certain": instead(never_certain),
    "expected_calibration_error.multiset": instead(by_order),
    "expected_calibration_error.ties": instead(later_class),
    "masked_lm_loss.visible": instead(all_count),
    "masked_lm_loss.partition": instead(over_all),
    "masked_lm_loss.positions": instead(by_position),
    "masked_lm_loss.conservation": gradient_of(0, shifted),
    "masked_lm_loss.range": instead(naive_loss),
    "masked_lm_loss.far_classes": change_arguments(short_numbers),
    "masked_lm_loss.no_target": change_any_result(lambda x: torch.where(x == 0, torch.nan, x)),
    "top_k_filter.untouched": instead(normalised),
    "top_k_filter.count": known("TOPK-01", "top_k_filter"),
    "top_k_filter.nested": instead(other_way),
    "top_k_filter.monotone": known("TOPK-01", "top_k_filter"),
    "top_k_filter.permutation": instead(first_alone),
    "top_p_filter.untouched": instead(normalised),
    "top_p_filter.nucleus": instead(before_crossing),
    "top_p_filter.never_empty": instead(emptied),
    "top_p_filter.all": instead(not_quite_all),
    "top_p_filter.ties": instead(before_crossing),
    "top_p_filter.nested": instead(before_crossing),
    "top_p_filter.shift": instead(above_zero),
    "top_p_filter.permutation": instead(first_alone),
    "greedy.equation": known("GREEDY-01", "greedy"),
    "greedy.long": instead(first_tile),
    "greedy.batch": change_any_result(lambda ids: ids.flatten()[:1].expand(ids.numel()).reshape(ids.shape)),
    "greedy.sensitivity": change_any_result(lambda ids: 0 * ids),
    "greedy.first": known("GREEDY-01", "greedy"),
    "greedy.monotone": instead(largest_size),
    "greedy.permutation": instead(last_but_one),
    "beam_search.contract": change_any_result(lambda found: found[0]),
    "beam_search.equation": searching(beam_width=lambda width: 1),
    "beam_search.width_one": instead(least_likely),
    "beam_search.own_score": scored(lambda score: score * 1.03125),
    "beam_search.ending": instead(greedily_unfinished),
    "beam_search.wider": scored(lambda score: score * 1.03125),
    "beam_search.impossible": instead(possible),
    "beam_search.relabelling": instead(forgets_the_first_id),
    "beam_search.purity": instead(scribbles_on_start),
    "beam_search.numpy_numbers": searching(beam_width=int.__index__, length_penalty=lambda p: p + 0.5),
    "bpe_train.contract": change_any_result(as_text),
    "bpe_train.equation": change_any_result(reversed_merges),
    "bpe_train.most_frequent": change_any_result(reversed_merges),
    "bpe_train.order": instead(one_text),
    "bpe_train.prefix": instead(by_budget),
    "bpe_train.renaming": instead(without_a),
    "bpe_train.nothing": instead(something),
    "bpe_train.purity": modifies(0),
    "bpe_train.numpy_numbers": instead(particular),
    "bpe_encode.contract": change_any_result(as_text),
    "bpe_encode.equation": known("TOK-01", "bpe_encode"),
    "bpe_encode.lossless": change_any_result(lossy),
    "bpe_encode.in_turn": known("TOK-01", "bpe_encode"),
    "bpe_encode.exhausted": instead(one_merge_left),
    "bpe_encode.runs": instead(from_the_right),
    "bpe_encode.duplicates": instead(later_rank),
    "bpe_encode.purity": modifies(1),
    "unigram_segment.contract": change_any_result(as_text),
    "unigram_segment.equation": instead(longest_match),
    "unigram_segment.joins": change_any_result(lossy),
    "unigram_segment.concatenation": instead(longest_match),
    "unigram_segment.vocabulary": instead(longest_match),
    "unigram_segment.range": instead(by_probability),
    "unigram_segment.purity": modifies(1),
}
