"""A consistent other convention is suggested as a claim; a bug is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from veriformer import impl
from veriformer.verify import check, load
from veriformer.verify.catalogue.selection import select
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.row import plan
from veriformer.verify.engine.suggestion import suggested
from veriformer.verify.results import Result
from veriformer.verify.targets.loading import wrap


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


def test_a_run_carries_its_suggestions() -> None:
    found = check(SimpleNamespace(causal_mask=top_left), only=["causal_mask"], dtype=["fp32"])
    claims = {tuple(result.suggestion.values()) for result in found.results if result.suggestion}
    assert claims == {("causal.alignment", "top-left")}
