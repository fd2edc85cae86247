"""Label smoothing as a class: over logits or log-probabilities, shared among all classes or all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.candidate import words as words_of
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import LOGITS, TARGET, default_of, roles

_CONSTRUCTED: Mapping[str, tuple[str, ...]] = {
    "smoothing": ("label_smoothing", "smoothing", "epsilon", "eps", "alpha", "smooth_eps", "ls"),
    "classes": (
        *("size", "vocab_size", "tgt_vocab_size", "trg_vocab_size", "vocabulary_size", "num_classes", "n_classes"),
        *("classes", "vocab", "n_vocab", "output_size"),
    ),
    "ignored": ("padding_idx", "ignore_index", "pad_idx", "pad_index", "pad_id", "pad_token_id"),
}
OVER = ("logits", "log-probabilities")
SPREAD = ("all classes", "all others", "all others but the padding")
"""Among which classes the smoothed part is shared. The second and third are the first by another smoothing: what the
target gets of it is left to the target beforehand, and the padding is one class more."""

GIVES = ("cross-entropy", "divergence")
REDUCTIONS = ("mean", "sum")
ROWS = ("rows", "any")


def _match(candidate: Candidate) -> Match | None:
    words = set(candidate.words)
    if not candidate.is_network or not words & _SMOOTH or words & {"l1", "l", "binary"}:
        return None
    if _of_call(candidate) is None:
        return None
    found = _constructed(candidate)
    if "smoothing" not in found:
        raise Unfit("its constructor has no smoothing by a name that is known")
    made = _made(candidate, found, 6, 0.1, 5)
    if not isinstance(made, nn.Module) or next(made.parameters(), None) is not None:
        return None
    spread = SPREAD if "classes" in found and "ignored" in found else SPREAD[:2]
    return Match(True, {"over": OVER, "spread": spread, "gives": GIVES, "reduction": REDUCTIONS, "shape": ROWS})


_SMOOTH = {"smoothing", "smooth", "smoothed"}
_LENGTHS = {"lengths": ("lengths", "seq_lengths", "target_lengths", "lens", "seq_lens")}


def _of_call(candidate: Candidate) -> dict[str, str] | None:
    return roles(candidate.parameters, {"logits": LOGITS, "target": TARGET}, _LENGTHS)


def _constructed(candidate: Candidate) -> dict[str, str]:
    listed = candidate.constructor
    found = {role: next((name for name in names if name in listed), "") for role, names in _CONSTRUCTED.items()}
    found["smoothing"] = found["smoothing"] or next((name for name in listed if _SMOOTH & set(words_of(name))), "")
    return {role: name for role, name in found.items() if name}


def _made(candidate: Candidate, found: Mapping[str, str], classes: int, smoothing: float, ignored: int | None) -> Any:
    values = {"classes": classes, "smoothing": smoothing, "ignored": ignored}
    given = {name: values[role] for role, name in found.items() if values[role] is not None}
    return built(candidate, {}, given)


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = _of_call(candidate) or {}
    found = _constructed(candidate)
    padded, others = readings["spread"] == SPREAD[2], readings["spread"] != SPREAD[0]
    ignoring = "ignored" in found

    def call(logits: Tensor, target: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = -100) -> Tensor:
        _check(logits, target, label_smoothing)
        v = logits.shape[-1]
        rows, flat = logits.reshape(-1, v), target.reshape(-1).to(torch.int64)
        seen = flat != ignore_index if ignoring else torch.ones_like(flat, dtype=torch.bool)
        given = label_smoothing * (v - 1) / v if others else label_smoothing
        x = rows.log_softmax(-1) if readings["over"] == OVER[1] else rows
        if padded:  # one class more, which is the padding: it has no share, and no probability
            least = rows.detach().amin(-1, keepdim=True) - 2000 if readings["over"] == OVER[0] else rows[:, :1] * 0
            x, flat = torch.cat((x, least.to(x.dtype)), -1), torch.where(seen, flat, v)
        ignored = v if padded else ignore_index
        module = _made(candidate, found, v + padded, given, ignored if ignoring else None).eval()
        if readings["shape"] == "any":
            x, flat = x.reshape(*logits.shape[:-1], v + padded), flat.reshape(target.shape)
        given_lengths: dict[str, Tensor] = {}
        if "lengths" in names:  # one sequence, none of whose places is padding
            x, flat = x.reshape(1, -1, x.shape[-1]), flat.reshape(1, -1)
            given_lengths = {names["lengths"]: torch.tensor([flat.shape[1]])}
        result: Tensor = first(module(**{names["logits"]: x, names["target"]: flat}, **given_lengths))
        if result.ndim:
            raise NotOffered("it gives more than one number")
        count = int(seen.sum())
        if readings["reduction"] == REDUCTIONS[1]:
            result = result / max(count, 1)
        return result + _entropy(v, label_smoothing) * bool(count) if readings["gives"] == GIVES[1] else result

    options = ["label_smoothing", *(["ignore_index"] if ignoring else [])]
    default = default_of(candidate.constructor, found["smoothing"])
    return offered("cross_entropy", call, options, required=["label_smoothing"] if default != 0.0 else ())


def _entropy(v: int, smoothing: float) -> float:
    """That of the smoothed target, by which a divergence is less than the cross-entropy."""
    q = torch.full((v,), smoothing / v, dtype=torch.float64)
    q[0] += 1 - smoothing
    return float(-torch.xlogy(q, q).sum())


def _check(logits: Tensor, target: Tensor, smoothing: float) -> None:
    if target.is_floating_point() or logits.ndim < 1 or target.shape != logits.shape[:-1] or not target.numel():
        raise NotOffered("target: classes of some rows are taken")
    if not 0 <= smoothing < 1:
        raise NotOffered("label_smoothing: from 0 to 1")


FORM = Form(
    name="modules/smoothed_loss",
    operation="cross_entropy",
    says="a class built from a smoothing, perhaps the classes and the padding: loss(input, target)",
    neutral=("shape",),
    match=_match,
    bind=_bind,
)
