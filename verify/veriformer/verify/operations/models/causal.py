"""Decoders: no token looks ahead, and none is dead; the cache goes on where a call stopped."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.laws.family import check
from veriformer.verify.operations.models import noise
from veriformer.verify.operations.models.agreement import EFFORT, Answer, Examination, examined, lengthened
from veriformer.verify.operations.models.applies import always, has_cache, has_cache_and_mask, has_reorder
from veriformer.verify.strategies import choice
from veriformer.verify.targets.model_kinds import OPERATIONS


def _causality(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    s = e.split()
    future = torch.arange(e.n) >= s
    others = torch.where(future, e.other(ids), ids)
    one, two = (e.answer("whole", ids=x, length=s, **asked) for x in (ids, others))
    e.agree(two, one, f"logits before position {s}, with other tokens from there on")


def _prefix(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    s = e.split()
    cut = e.answer("whole", ids=ids[:, :s], **asked)
    e.agree(cut, e.answer("whole", ids=ids, length=s, **asked), f"logits of the first {s} tokens alone")


def _reach(e: Examination) -> None:
    """A token moves its own logits; gradients reach an unbroken stretch of tokens up to the position, none after."""
    e.B = 1
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    t = e.split()
    others = ids.clone()
    others[:, t] = e.other(ids)[:, t]
    one, two = (e.ask("whole", ids=x, **asked) for x in (ids, others))
    e.finite(one), e.finite(two)
    message = f"the token at position {t} does not change the logits there"
    said = f"not torch.equal({one.name}[:, {t}], {two.name}[:, {t}])"
    e.trial.require(not torch.equal(one.value[:, t], two.value[:, t]), message, said)
    influence = e.answer("influence", ids=ids, at=t, seed=e.seed, **asked)
    if influence.cells:
        _stretch(e, influence, t)


def _stretch(e: Examination, influence: Answer, t: int) -> None:
    sizes = np.concatenate(influence.cells)
    name = influence.outcome.name
    ahead = _tail(influence, t + 1)
    bound = noise.factor(noise.RUNS, len(ahead.cells)) * np.sqrt(ahead.squares)
    e.within(ahead, _nothing(ahead), bound, "gradient for later tokens")
    reached = np.flatnonzero(sizes[: t + 1])
    unbroken = len(reached) > 0 and reached[-1] == t and len(reached) == t + 1 - reached[0]
    said = f"bool(({name}[{int(reached[0]) if len(reached) else 0}:{t + 1}] != 0).all())"
    e.trial.require(bool(unbroken), f"some token between those that reach position {t} does not", said)


def _tail(answer: Answer, start: int) -> Answer:
    return Answer(answer.outcome, answer.cells[start:], lambda: answer.squares[start:])


def _nothing(answer: Answer) -> Answer:
    return Answer(answer.outcome, [np.zeros_like(x) for x in answer.cells], lambda: answer.squares)


def _cache_split(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    s = e.split()
    cached = e.answer("in_parts", ids=ids, splits=[s], **asked)
    e.agree(cached, e.answer("whole", ids=ids, **asked), f"logits through the cache, cut at {s}")


def _cache_steps(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    e.n = min(e.n, 9)
    ids = e.tokens()
    start = e.trial.draw(choice(1, 2))
    cached = e.answer("in_parts", ids=ids, splits=list(range(min(start, e.n - 1), e.n)), **asked)
    e.agree(cached, e.answer("whole", ids=ids, **asked), "logits token by token through the cache")


def _cache_padding(e: Examination) -> None:
    e.live(**e.asked())
    e.n = max(5, min(e.n, 9))
    ids, asked = e.tokens(), e.asked()
    s = e.trial.draw(choice(e.n - 2, e.n - 1, e.n - 3))
    mask = torch.cat((e.mask("left", s), torch.ones(e.B, e.n - s, dtype=torch.int64)), 1)
    splits = list(range(s, e.n)) if e.trial.draw(choice(True, False)) else [s]
    cached = e.answer("in_parts", ids=ids, mask=mask, splits=splits, **asked)
    plain = e.answer("unpadded", ids=ids, mask=mask, **asked)
    e.agree(cached, plain, "logits through the cache with padding on the left")


def _cache_branch(e: Examination) -> None:
    asked = e.asked()
    e.live(**asked)
    ids = e.tokens()
    given = {"ids": ids, "others": e.other(ids), "split": e.split(), **asked}
    e.agree(e.answer("branched", **given), e.answer("unbranched", **given), "logits from a copied cache")


def _cache_reorder(e: Examination) -> None:
    e.live(**e.asked())
    e.B = max(2, e.B)
    ids, asked = e.tokens(), e.asked()
    order = torch.from_numpy(e.rng.integers(0, e.B, e.B))
    order[0] = e.B - 1
    given = {"ids": ids, "order": order, "others": e.other(ids), "split": e.split(), **asked}
    e.agree(e.answer("reordered", **given), e.answer("gathered", **given), "logits from a reordered cache")


CHECKS = tuple(
    check(
        f"{operation}.{name}", examined(body), dtypes=("fp64", "fp32"), effort=EFFORT, **{"applies": always, **options}
    )
    for operation in OPERATIONS
    if operation != "masked_lm"
    for name, body, options in (
        ("causality", lengthened(_causality), {}),
        ("prefix", lengthened(_prefix), {}),
        ("reach", _reach, {}),
        ("cache_split", lengthened(_cache_split), {"applies": has_cache}),
        ("cache_steps", _cache_steps, {"applies": has_cache}),
        ("cache_padding", _cache_padding, {"applies": has_cache_and_mask, "convention": "causal_lm.positions"}),
        ("cache_branch", _cache_branch, {"applies": has_cache}),
        ("cache_reorder", _cache_reorder, {"applies": has_reorder}),
    )
)
