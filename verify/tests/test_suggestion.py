"""A consistent other convention is suggested as a claim; a bug is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from veriformer import impl
from veriformer.verify import check, load
from veriformer.verify.catalogue.selection import select
from veriformer.verify.engine import runner
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES, Profile
from veriformer.verify.engine.runner import suggested
from veriformer.verify.judging.row import CheckRun, plan
from veriformer.verify.results import Result
from veriformer.verify.targets.loading import wrap
from veriformer.verify.targets.target import Target


def top_left(n_q: int, n_k: int, *, window: int | None = None) -> torch.Tensor:
    seen = torch.ones(n_q, n_k, dtype=torch.bool).tril()
    return seen if window is None else seen.triu(1 - window)


def judged(implementation: object, slug: str) -> Result:
    (check_,) = (c for c in select([slug]) if c.requirement.slug == slug)
    (row, *_) = plan([check_], [check_.dtypes[0]])
    target = wrap(implementation)
    return suggested(row, target, run_check(row, target, PROFILES["quick"], "slug", {}), "slug")


def test_another_convention_is_suggested_and_holds_once_it_is_claimed() -> None:
    mine = SimpleNamespace(causal_mask=top_left)
    found = judged(mine, "causal_mask.equation")
    assert found.status == "fail"
    assert found.suggestion == {"convention": "causal.alignment", "value": "top-left"}
    mine.CLAIMS = {"conventions": {"causal.alignment": "top-left"}}
    assert judged(mine, "causal_mask.equation").suggestion is None
    assert judged(mine, "causal_mask.equation").status != "fail"


def test_a_bug_is_no_convention() -> None:
    mutant = load("mutant:KV-01").implementation
    found = judged(mutant, "causal_mask.equation")
    assert found.status == "fail"
    assert found.suggestion is None


@pytest.mark.whole
def test_a_convention_that_only_some_rows_follow_is_not_suggested() -> None:
    """Attention whose windows are aligned to the top left, and whose causality is not."""

    def attention(q: Any, k: Any, v: Any, *, window: Any = None, is_causal: bool = False, **o: Any) -> Any:
        if window is None:
            return impl.attention(q, k, v, is_causal=is_causal, **o)
        return impl.attention(q, k, v, mask=top_left(q.shape[2], k.shape[2], window=window), scale=o.get("scale"))

    found = judged(SimpleNamespace(attention=attention), "attention.window")
    assert found.status == "fail"
    assert found.suggestion is None


def test_what_holds_gets_no_suggestion() -> None:
    assert judged(load("impl").implementation, "causal_mask.equation").suggestion is None


@pytest.mark.whole
def test_a_run_carries_its_suggestions() -> None:
    found = check(SimpleNamespace(causal_mask=top_left), only=["causal_mask"], dtype=["fp32"])
    claims = {tuple(result.suggestion.values()) for result in found.results if result.suggestion}
    assert claims == {("causal.alignment", "top-left")}


def heads(hide: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> SimpleNamespace:
    """Multi-head attention that hides keys so. hide: of scores [B,H,n,m], and of what is hidden [B,1,n,m]."""

    def multi_head_attention(
        x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, *, num_heads: int, attention_mask: Any = None, **o: Any
    ) -> Any:
        y = x if o.get("context") is None else o["context"]
        groups = o.get("num_kv_heads") or num_heads
        q = (x @ w_q).unflatten(-1, (num_heads, -1)).transpose(1, 2)
        k, v = ((y @ w).unflatten(-1, (groups, -1)).transpose(1, 2) for w in (w_k, w_v))
        k, v = (t.repeat_interleave(num_heads // groups, 1) for t in (k, v))
        hidden = torch.zeros(x.shape[0], 1, x.shape[1], y.shape[1], dtype=torch.bool)
        if attention_mask is not None:
            hidden |= ~attention_mask[:, None, None, :]
        if o.get("is_causal"):
            hidden |= ~impl.causal_mask(x.shape[1], y.shape[1])
        weights = F.softmax(hide(q @ k.mT / q.shape[-1] ** 0.5, hidden), -1)
        return (weights @ v).transpose(1, 2).flatten(2) @ w_o

    return SimpleNamespace(multi_head_attention=multi_head_attention)


@pytest.mark.parametrize(
    ("hide", "value"),
    [
        (lambda scores, hidden: scores.masked_fill(hidden, float("-inf")), "nan"),
        (lambda scores, hidden: scores.masked_fill(hidden, -1e9), "uniform"),
        (lambda scores, hidden: scores - 1e4 * hidden, None),  # among keys that are all hidden it chooses by score
    ],
)
def test_what_a_layer_gives_without_a_key_is_a_convention_where_it_is_one(hide: Any, value: str | None) -> None:
    found = judged(heads(hide), "multi_head_attention.no_key")
    assert found.status == "fail"
    assert (found.suggestion or {}).get("value") == value


def test_a_claim_is_tried_on_twice_as_many_examples_as_it_took_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    (check_,) = (c for c in select(["causal_mask.equation"]) if c.requirement.slug == "causal_mask.equation")
    (row, *_) = plan([check_], [check_.dtypes[0]])
    target = wrap(SimpleNamespace(causal_mask=top_left))
    result = run_check(row, target, PROFILES["quick"], "slug", {})
    tried: list[int] = []

    def run(one: CheckRun, target: Target, profile: Profile, *rest: Any) -> Result:
        tried.append(profile.examples)
        return run_check(one, target, profile, *rest)

    monkeypatch.setattr(runner, "run_check", run)
    suggested(row, target, replace(result, examples=40), "slug")
    assert set(tried) == {80}
