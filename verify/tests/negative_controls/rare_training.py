"""Faults of training, generation and text that only a rare input shows: by name the requirement that must see each."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.formulas.kernels import OptimizerKernel
from veriformer.verify.formulas.stepper import Stepper, Update, stepping
from veriformer.verify.mutants.combinators import Fault, Operation, edited, instead, replace_by


def batches(change: Any) -> Fault:
    """Accumulation of what ``change`` makes of the loss and the count of each micro-batch."""
    return instead(lambda op, loss_fn, *args: op(lambda batch: change(*loss_fn(batch)), *args))


def mean_of_none(loss: Tensor, count: Any) -> Any:
    return (loss if int(count) else loss * torch.nan), count


def adds_to_the_count(loss: Tensor, count: Any) -> Any:
    given = copy.copy(count) if isinstance(count, int) else count.clone()
    count += 1
    return loss, given


def sums_in_half(op: Operation, loss_fn: Any, params: Any, micro_batches: Any) -> Any:
    """Sums that leave the range of fp16 are infinite."""
    tokens = []

    def counted(batch: Any) -> Any:
        loss, count = loss_fn(batch)
        tokens.append(int(count))
        return loss, count

    found = op(counted, params, micro_batches)
    return [torch.where((g * sum(tokens)).abs() > 65504, torch.inf, g) for g in found]


def making(update: Update) -> Fault:
    """An optimizer of its own with this update, whose options other than the rate are as they are given."""
    return replace_by(stepping(update))


def counting_to(last: int) -> Fault:
    """Adam whose correction takes later steps for this one."""
    return edited("adam", ("weight_so_far(xp, beta, s.t)", f"weight_so_far(xp, beta, min(s.t, {last}))"))


ADAM = OptimizerKernel("adam").update


def within_a_bound(p: Tensor, g: Tensor, state: dict[str, Any], **options: Any) -> None:
    ADAM(p, g.clamp(-1e4, 1e4), state, **options)


def short_steps(p: Tensor, g: Tensor, state: dict[str, Any], *, lr: float, **options: Any) -> None:
    before = p.clone()
    ADAM(p, g, state, lr=lr, **options)
    p.copy_(torch.where((p - before).abs() > 11 * lr, before + 10 * lr * (p - before).sign(), p))


def in_order_of_memory(p: Tensor, g: Tensor, state: dict[str, Any], **options: Any) -> None:
    g = g.mT.reshape(g.shape) if g.ndim == 2 and g.mT.is_contiguous() else g
    OptimizerKernel("gradient_descent").update(
        p, g.mT.reshape(g.shape) if g.ndim == 2 and g.mT.is_contiguous() else g, state, **options
    )


class Compact(Stepper):
    """Optimizer that saves the states that there are, and loads them as those of the first parameters."""

    def state_dict(self) -> dict[str, Any]:
        return {"states": [state for state in self.states if state], "options": self.options}

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        super().load_state_dict(saved)
        self.states += [{} for _ in self.params[len(self.states) :]]


def ties_counted_in_half(op: Operation, logits: Tensor, k: int) -> Tensor:
    least = logits.topk(k).values[..., -1:]
    more, equal = logits > least, logits == least
    room = k - more.sum(-1, keepdim=True)
    return logits.masked_fill(~(more | (equal & (equal.bfloat16().cumsum(-1) <= room))), -torch.inf)


def hopeless_at_full_length(
    op: Operation, step: Any, start: Tensor, *, max_length: int, eos: int, length_penalty: float, **options: Any
) -> Any:
    """End after one token where a text of full length and of the sum so far would not be better."""
    log_p = step(start[None])[0].double()
    others = torch.cat([log_p[:eos], log_p[eos + 1 :], log_p.new_full((1,), -torch.inf)]).max()
    if log_p[eos] > others / (max_length - len(start)) ** length_penalty:
        return torch.cat([start, start.new_tensor([eos])]), float(log_p[eos])
    return op(step, start, max_length=max_length, eos=eos, length_penalty=length_penalty, **options)


ENDED = "[h for h in kept if h.ids[-1] == eos]"
FEW_FINISHED = f"finished = sorted(finished + {ENDED}, key=lambda h: -h.total)[:beam_width]"
"""Edit of beam search: of the finished texts as many are kept as the beam is wide, by their sums."""


def replaced_as_strings(op: Operation, texts: Sequence[str], num_merges: int) -> Any:
    lines, merges = [" ".join(f"{byte:02x}" for byte in text.encode()) for text in texts], list[Any]()
    while len(merges) < num_merges:
        counts = Counter(pair for line in lines for pair in pairwise(line.split()))
        if not counts:
            break
        pair = counts.most_common(1)[0][0]
        merges.append(tuple(bytes.fromhex(part) for part in pair))
        lines = [line.replace(" ".join(pair), "".join(pair)) for line in lines]
    return merges


def a_call_for_each_merge(op: Operation, text: str, merges: Any) -> list[bytes]:
    pieces: list[bytes] = op(text, merges)
    if len(text.encode()) - len(pieces) > 1000:
        raise RecursionError("maximum recursion depth exceeded")
    return pieces


RARE: dict[str, tuple[str, Fault]] = {
    "NaN for a micro-batch without a token that counts": ("accumulate_gradients.equation", batches(mean_of_none)),
    "a count that is written into": ("accumulate_gradients.equation", batches(adds_to_the_count)),
    "sums of gradients in the range of fp16": ("accumulate_gradients.equation", instead(sums_in_half)),
    "steps counted to 256": ("adam.long_run", counting_to(256)),
    "a table of a thousand corrections": ("adam.long_run", counting_to(1000)),
    "gradients within 1e4": ("adam.equation", making(within_a_bound)),
    "steps within ten learning rates": ("adam.equation", making(short_steps)),
    "gradients read in the order of memory": ("gradient_descent.equation", making(in_order_of_memory)),
    "states saved without their places": ("sgd_momentum.resume", edited("sgd_momentum", made=Compact)),
    "equal scores counted in half precision": ("top_k_filter.count", instead(ties_counted_in_half)),
    "an end where full length is no gain": ("beam_search.equation", instead(hopeless_at_full_length)),
    "no more finished texts than the beam is wide": (
        "beam_search.equation",
        edited(
            "beam_search",
            (f"finished += {ENDED}", FEW_FINISHED),
        ),
    ),
    "merges made in a string": ("bpe_train.most_frequent", instead(replaced_as_strings)),
    "a call within a call for each merge": ("bpe_encode.equation", instead(a_call_for_each_merge)),
}
