"""Laws of decoders: causality, influence of every token, and resumption from a cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.laws.family import check
from veriformer.verify.operations.models.agreement import EFFORT, ModelExample, lengthened, model_property
from veriformer.verify.operations.models.applies import always, has_cache, has_cache_and_mask, has_reorder
from veriformer.verify.operations.models.drawn import LONGEST
from veriformer.verify.strategies import choice
from veriformer.verify.targets.kinds import MODELS


def _causality(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    for s in e.splits(1 if e.n < LONGEST // 2 else 3):
        future = (torch.arange(e.n) >= s).expand(e.B, e.n)
        e.unseen(ids, future, ~future, f"logits before position {s}", **asked)


def _prefix(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    s = e.split()
    cut = e.answer("whole", ids=ids[:, :s], **asked)
    e.agree(cut, e.answer("whole", ids=ids, length=s, **asked), f"logits of the first {s} tokens alone")


def _reach(e: ModelExample) -> None:
    """A token changes its own logits; gradients reach a contiguous stretch of tokens up to the position, none after."""
    e.B = 1
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    t = e.split()
    others = ids.clone()
    others[:, t] = e.other(ids)[:, t]
    one, two = (e.ask("whole", ids=x, **asked) for x in (ids, others))
    e.finite(one), e.finite(two)
    message = f"the token at position {t} does not change the logits there"
    said = f"not torch.equal({one.name}[:, {t}], {two.name}[:, {t}])"
    e.trial.assert_true(not torch.equal(one.value[:, t], two.value[:, t]), message, said)
    here = torch.arange(e.n)[None] == t
    e.unreached(ids, torch.arange(e.n)[None] > t, "gradient for later tokens", places=here, **asked)
    influence = e.ask("influence", ids=ids, places=here, seed=e.seed, **asked)
    if len(influence.value):
        _unbroken(e, influence, t)


def _unbroken(e: ModelExample, influence: Outcome, t: int) -> None:
    reached = influence.value[: t + 1].any(-1).nonzero().flatten().tolist()
    unbroken = bool(reached) and reached[-1] == t and len(reached) == t + 1 - reached[0]
    said = f"bool({influence.name}[{reached[0] if reached else 0}:{t + 1}].any(-1).all())"
    e.trial.assert_true(unbroken, f"some token between those that reach position {t} does not", said)


def _cache_split(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    s = e.split()
    cached = e.answer("in_parts", ids=ids, splits=[s], **asked)
    e.agree(cached, e.answer("whole", ids=ids, **asked), f"logits through the cache, cut at {s}")
    _same_reach(e, ids, s, asked)


def _same_reach(e: ModelExample, ids: torch.Tensor, s: int, asked: dict[str, Any]) -> None:
    """A token reaches the same positions through the cache as in one call, up to rounding.

    Where another token changes no bit of a position's logits in the one way, it may change them in the other by no more
    than rounding does; and no gradient flows through the cache that does not flow without.
    """
    t = int(e.rng.integers(e.n))
    others = ids.clone()
    others[:, t] = e.other(ids)[:, t]
    whole = tuple(e.answer("whole", ids=x, **asked) for x in (ids, others))
    cached = tuple(e.answer("in_parts", ids=x, splits=[s], **asked) for x in (ids, others))
    for (one, two), judged, how in ((whole, cached, "through the cache"), (cached, whole, "without a cache")):
        still = np.asarray([np.array_equal(a, b) for a, b in zip(one.cells, two.cells, strict=True)])
        what = f"logits {how} that another token at position {t} does not change otherwise"
        e.vanishes(judged[1].part(still), judged[0].part(still), what)
    here = (torch.arange(e.n) == e.n - 1).expand(e.B, e.n)
    silent = (e.ask("influence", ids=ids, places=here, seed=e.seed, **asked).value == 0).all(-1)
    if len(silent):
        what = "gradient through the cache for tokens that do not reach the last one otherwise"
        e.unreached(ids, silent.reshape(e.B, e.n), what, places=here, splits=[s], **asked)


def _cache_steps(e: ModelExample) -> None:
    few = e.trial.draw(choice(None, 1, 3, 6))
    if few is None:  # from the start, else the last few of a long text
        e.n = min(e.n, 9)
        start = min(e.trial.draw(choice(1, 2)), e.n - 1)
    else:
        e.B, e.n = e.trial.draw(choice(1, 1, 3)), LONGEST - e.trial.draw(choice(0, 3))
        start = e.n - few
    asked = e.call_options()  # a source has as many texts
    e.assert_not_constant(**asked)
    ids = e.tokens()
    cached = e.answer("in_parts", ids=ids, splits=list(range(start, e.n)), **asked)
    e.agree(cached, e.answer("whole", ids=ids, **asked), "logits token by token through the cache")


def _cache_padding(e: ModelExample) -> None:
    e.assert_not_constant(**e.call_options())
    ids, asked = e.tokens(), e.call_options()
    s = e.trial.draw(choice(e.n - 2, e.n - 1, e.n - 3))
    mask = torch.cat((e.mask("left", s), torch.ones(e.B, e.n - s, dtype=torch.int64)), 1)
    splits = list(range(s, e.n)) if e.trial.draw(choice(True, False)) else [s]
    cached = e.answer("in_parts", ids=ids, mask=mask, splits=splits, **asked)
    plain = e.answer("unpadded", ids=ids, mask=mask, **asked)
    e.agree(cached, plain, "logits through the cache with padding on the left")


def _cache_branch(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    given = {"ids": ids, "others": e.other(ids), "split": e.split(), **asked}
    e.agree(e.answer("branched", **given), e.answer("unbranched", **given), "logits from a copied cache")


def _cache_reorder(e: ModelExample) -> None:
    e.assert_not_constant(**e.call_options())
    e.B = max(2, e.B)
    ids, asked = e.tokens(), e.call_options()
    order = torch.from_numpy(e.rng.integers(0, e.B, e.B))
    order[0] = e.B - 1
    given = {"ids": ids, "order": order, "others": e.other(ids), "split": e.split(), **asked}
    e.agree(e.answer("reordered", **given), e.answer("gathered", **given), "logits from a reordered cache")


CHECKS = tuple(
    check(
        f"{operation}.{name}",
        model_property(body),
        dtypes=("fp64", "fp32"),
        effort=EFFORT,
        **{"applies": always, **options},
    )
    for operation in MODELS
    if operation != "masked_lm"
    for name, body, options in (
        ("causality", lengthened(_causality), {}),
        ("prefix", lengthened(_prefix), {}),
        ("reach", _reach, {}),
        ("cache_split", lengthened(_cache_split), {"applies": has_cache}),
        ("cache_steps", _cache_steps, {"applies": has_cache}),
        (
            "cache_padding",
            lengthened(_cache_padding),
            {"applies": has_cache_and_mask, "convention": "causal_lm.positions"},
        ),
        ("cache_branch", _cache_branch, {"applies": has_cache}),
        ("cache_reorder", _cache_reorder, {"applies": has_reorder}),
    )
)
