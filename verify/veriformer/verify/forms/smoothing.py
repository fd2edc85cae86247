"""Label smoothing in classes and functions: over which scores, among which classes, and what is made of the rows."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.form import Match, NotOffered, Readings
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.score_domains import LOG_PROBS, TAKES, domain_of
from veriformer.verify.forms.signatures import LOGITS, TARGET

SCORES = (*LOGITS, *LOG_PROBS)
TARGETS = (*TARGET, "trg", "gold_ids", "token_ids", "ids")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "smoothing": (
        *("label_smoothing", "smoothing", "smoothing_value", "smooth_factor", "epsilon", "eps", "alpha"),
        *("smooth_eps", "ls", "smooth"),
    ),
    "classes": (
        *("size", "vocab_size", "tgt_vocab_size", "trg_vocab_size", "vocabulary_size", "num_classes", "n_classes"),
        *("classes", "vocab", "n_vocab", "output_size", "n_class", "num_class"),
    ),
    "ignored": (
        *("padding_idx", "ignore_index", "pad_idx", "pad_index", "pad_id", "pad_token_id", "trg_pad_idx"),
        *("tgt_pad_idx", "ignore_idx", "ignored_index", "ignore_label", "ignore_id", "ignored_label"),
    ),
    "reduction": ("reduction",),
}
SMOOTH = {"smoothing", "smooth", "smoothed"}
SPREAD = ("all classes", "all others", "all others but the padding")
"""Among which classes the smoothed part is shared. The second and third are the first by another smoothing: what the
target gets of it is left to the target beforehand, and the padding is one class more."""

GIVES = ("cross-entropy", "divergence", "distribution")
REDUCTIONS = ("mean", "sum")
SHAPES = ("rows", "any", "sequences", "a column")
"""Shapes of targets: rows alone, any axes, a batch of sequences, or one class in each row of a matrix."""

IGNORED = ("any id", "a class")
"""Targets that may be ignored: any number, or a class alone, which is looked up before it is left out."""


@dataclass(frozen=True)
class Smoothing:
    """A way to call smoothed losses. call, options: by role the code's names. flag: the share that a flag switches
    on, which the code has for itself; None where the share is given. evaluate: from arguments of the call and options,
    by role, to the code's result. optional: whether what is ignored may be left out where nothing is."""

    call: Mapping[str, str]
    options: Mapping[str, str]
    default: Any
    evaluate: Callable[[dict[str, Any], dict[str, Any]], Any]
    flag: float | None = None
    optional: bool = False


def option_names(parameters: Mapping[str, inspect.Parameter]) -> dict[str, str]:
    """Return by role the names of options among these parameters; a smoothing by a word of its name as well."""
    found = {role: next((name for name in names if name in parameters), "") for role, names in OPTIONS.items()}
    by_word = next((name for name in parameters if SMOOTH & set(words(name))), "")
    found["smoothing"] = by_word or found["smoothing"]
    return {role: name for role, name in found.items() if name}


def match_of(
    candidate: Candidate, call: Mapping[str, str], options: Mapping[str, str], *, looks_up: bool = False
) -> Match:
    """Return the match with the readings to try. looks_up: whether it looks up the class that it ignores among others;
    of a loss that is told no classes it is tried."""
    domain = domain_of(candidate, (call["logits"],)) if "logits" in call else ""
    over = (domain,) if domain in TAKES[:2] else TAKES[:2]
    several = "classes" in options and "ignored" in options
    distribution = "logits" not in call
    return Match(
        True,
        {
            "over": TAKES[:1] if distribution else over,
            "spread": SPREAD if several else SPREAD[:2],
            "gives": GIVES[2:] if distribution else GIVES[:2],
            "reduction": REDUCTIONS[:1] if distribution or "reduction" in options else REDUCTIONS,
            "shape": (*SHAPES[:2], SHAPES[3]) if distribution else SHAPES[:3],
            **({"ignored": (IGNORED[looks_up],) if several else IGNORED} if "ignored" in options else {}),
        },
        ("the cross-entropy of its distribution is formed by the suite",) if distribution else (),
    )


def loss_of(way: Smoothing, readings: Readings) -> Callable[..., Tensor]:
    """Return the contract's cross-entropy by one way to call the code."""

    normalises = functools.cache(lambda: _normalises(way, readings))

    def call(
        logits: Tensor,
        target: Tensor,
        *,
        label_smoothing: float = 0.0,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> Tensor:
        _check(logits, target, label_smoothing)
        if readings["over"] == TAKES[1] and normalises():
            raise NotOffered("logits: it normalises scores itself, so that they are logits")
        rows = _Rows.of(logits, target, ignore_index, way, readings)
        if reduction == "none" and "lengths" in way.call:
            raise NotOffered("reduction: of sequences alone")
        shares = list(_parts(way, rows, label_smoothing))
        terms = [_loss(way, readings, rows, given, reduction) for _, given in shares]
        result = terms[0] if len(terms) == 1 else _mixed(terms, [share for share, _ in shares])
        less = _entropy(rows.classes, label_smoothing) if readings["gives"] == GIVES[1] else 0.0
        return result + less * rows.counted(reduction) if less else result

    options = ["label_smoothing", *(["ignore_index"] if "ignored" in way.options else [])]
    options += ["reduction"] if "reduction" in way.options else []
    required = ["label_smoothing"] if way.default not in (0.0, False) else ()
    return as_operation("cross_entropy", call, options, required=required)


def _normalises(way: Smoothing, readings: Readings) -> bool:
    """Return whether the code's loss stays about where it is where all scores are larger by one number.

    Over log-probabilities each of its terms falls by that number. A term that vanishes for log-probabilities alone, as
    the square of their logsumexp, would not be seen in them.
    """
    scores, target = torch.tensor([[0.5, -1.0, 0.0], [-0.5, 2.0, 1.0]]), torch.tensor([0, 2])
    try:
        one, other = (
            _loss(way, readings, _Rows.of(x, target, -100, way, {**readings, "over": TAKES[0]}), 0.0, "mean")
            for x in (scores, scores + 1)
        )
    except Exception:  # refused, for whatever reason
        return False
    return bool((one - other).abs().max() < 0.5)


def _mixed(terms: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """Return the sum of losses by their shares, rounded once."""
    whole = torch.stack([share * x.double() for x, share in zip(terms, shares, strict=True)])
    return whole.sum(0).to(terms[0].dtype)


@dataclass(frozen=True)
class _Rows:
    """Rows of scores and their targets, as the code takes them. seen: which targets count. shape: of the targets."""

    x: Tensor
    target: Tensor
    seen: Tensor
    ignored: int
    classes: int
    shape: torch.Size
    others: bool

    @classmethod
    def of(cls, logits: Tensor, target: Tensor, ignored: int, way: Smoothing, readings: Readings) -> _Rows:
        v, others = logits.shape[-1], readings["spread"] != SPREAD[0]
        if others and v < 2:
            raise NotOffered("logits: one class has no others that could share what is smoothed")
        rows, flat = logits.reshape(-1, v), target.reshape(-1).to(torch.int64)
        seen = flat != ignored if "ignored" in way.options else torch.ones_like(flat, dtype=torch.bool)
        x = rows.log_softmax(-1) if readings["over"] == TAKES[1] else rows
        if readings["spread"] == SPREAD[2]:  # one class more, which is the padding: no share, and no probability
            padding = without_probability(rows) if readings["over"] == TAKES[0] else rows[:, :1] * 0
            x, flat, ignored = torch.cat((x, padding), -1), torch.where(seen, flat, v), v
        elif readings.get("ignored") == IGNORED[1] and not 0 <= ignored < v and not bool(seen.all()):
            ignored = next((one for one in range(v) if not bool((flat == one).any())), v)
            if ignored == v:
                raise NotOffered("target: no class is left that could be ignored")
            flat = torch.where(seen, flat, ignored)
        return cls(x, flat, seen, ignored, v, target.shape, others)

    def counted(self, reduction: str) -> Any:
        """Return how often a sum by this reduction has the term of one row; of none by row."""
        if reduction == "none":
            return self.seen.reshape(self.shape)
        return int(self.seen.sum()) if reduction == "sum" else int(bool(self.seen.any()))


_FAR = -2 * math.log(torch.finfo(torch.float64).smallest_normal * torch.finfo(torch.float64).eps)
"""Twice as far as the logarithm of the smallest number above 0 in double precision, which has the widest range of
exponents: exp(-_FAR) is 0 in every format, also where the difference of two scores is rounded."""


def without_probability(rows: Tensor) -> Tensor:
    """Return a finite score for each row of scores that is so far below all others that its probability is 0.

    Raises NotOffered where their format has none.
    """
    least = rows.detach().amin(-1, keepdim=True)
    found = (least.double() - _FAR).to(rows.dtype)
    apart = least.double() - found.double()
    if bool((apart.isinf() | (apart < _FAR / 2)).any()):
        raise NotOffered(f"logits: {rows.dtype} has no score so far below them that its probability is 0")
    return found


def _parts(way: Smoothing, rows: _Rows, smoothing: float) -> Iterator[tuple[float, Any]]:
    """Yield shares and what the code is given for each: between off and on the loss is linear in the smoothing."""
    v = rows.classes
    if way.flag is None:
        yield 1.0, smoothing * (v - 1) / v if rows.others else smoothing
        return
    most = way.flag * v / max(v - 1, 1) if rows.others else way.flag
    if smoothing > most:
        raise NotOffered(f"label_smoothing: at most its own {way.flag}")
    if smoothing < most:
        yield 1 - smoothing / most, False
    if smoothing > 0:
        yield smoothing / most, True


def _loss(way: Smoothing, readings: Readings, rows: _Rows, smoothing: Any, reduction: str) -> Tensor:
    ignoring = "ignored" in way.options and not (way.optional and bool(rows.seen.all()))
    options = {
        "smoothing": smoothing,
        "classes": rows.x.shape[-1],
        **({"ignored": rows.ignored} if ignoring else {}),
        **({"reduction": reduction} if "reduction" in way.options else {}),
    }
    x, target = rows.x, rows.target
    if readings["shape"] == SHAPES[1]:
        x, target = x.reshape(*rows.shape, x.shape[-1]), target.reshape(rows.shape)
    elif readings["shape"] == SHAPES[2]:
        x, target = x[None], target[None]
    elif readings["shape"] == SHAPES[3]:
        target = target[:, None]
    given: dict[str, Any] = {"logits": x, "target": target}
    if "lengths" in way.call:  # one sequence, none of whose places is padding
        given = {"logits": x.reshape(1, -1, x.shape[-1]), "target": target.reshape(1, -1)}
        given["lengths"] = torch.tensor([given["target"].shape[1]])
    result = first(way.evaluate({role: given[role] for role in way.call}, options))
    if readings["gives"] == GIVES[2]:
        return _of_distribution(result, rows, reduction)
    return _reduced(result, rows, readings, reduction, own="reduction" in way.options)


def _of_distribution(found: Tensor, rows: _Rows, reduction: str) -> Tensor:
    """Return the cross-entropy of the rows with what the code gives for their targets."""
    if found.shape != (*rows.target.shape, rows.x.shape[-1]) and found.numel() != rows.x.numel():
        raise NotOffered("expected a distribution for each target")
    shares = found.reshape(rows.x.shape).double()
    log_probs = torch.where(shares == 0, 0.0, rows.x.double().log_softmax(-1))  # what has no share is no 0 · ∞
    total = -(shares * log_probs).sum()
    return (total / max(int(rows.seen.sum()), 1)).to(rows.x.dtype)


def _reduced(result: Any, rows: _Rows, readings: Readings, reduction: str, *, own: bool) -> Tensor:
    """Return what the contract gives for a reduction; a term for each row may stand in a column."""
    if own and reduction == "none" and isinstance(result, Tensor) and result.numel() == rows.target.numel():
        return result.reshape(rows.shape)
    if not isinstance(result, Tensor) or result.ndim:
        raise NotOffered(f"expected a scalar loss, got {tuple(getattr(result, 'shape', ())) or type(result).__name__}")
    if not own and readings["reduction"] == REDUCTIONS[1]:
        return result / max(int(rows.seen.sum()), 1)
    return result


def _entropy(v: int, smoothing: float) -> float:
    """Return the entropy of the smoothed target, by which a divergence is less than the cross-entropy."""
    q = torch.full((v,), smoothing / v, dtype=torch.float64)
    q[0] += 1 - smoothing
    return float(-torch.xlogy(q, q).sum())


def _check(logits: Tensor, target: Tensor, smoothing: float) -> None:
    if target.is_floating_point() or logits.ndim < 1 or target.shape != logits.shape[:-1] or not target.numel():
        raise NotOffered("target: classes of some rows are taken")
    if not 0 <= smoothing < 1:
        raise NotOffered("label_smoothing: from 0 to 1")
