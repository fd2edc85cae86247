"""transformers under the contract's names: found, claimed, and what is known of it."""

from __future__ import annotations

import pytest
import torch

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Status
from veriformer.verify.targets.loading import load

pytest.importorskip("transformers")

FEW = Profile(name="few", examples=5, shrinks=0, timeout_s=60)


@pytest.mark.parametrize("name", ["transformers", "transformers:eager"])
def test_every_operation_is_provided_or_has_a_reason(name: str) -> None:
    target = load(name)
    lacking = {operation for operation in POSITIONAL if not target.operation(operation)}
    assert lacking == set(target.claims.not_provided)


@pytest.mark.parametrize(
    ("name", "slug", "dtype"),
    [
        ("transformers", "cached_attention.equation", "fp32"),
        ("transformers", "rope.equation", "fp32"),
        ("transformers", "mixture_of_experts.equation", "fp32"),
        ("transformers", "top_p_filter.nucleus", "fp32"),
        ("transformers:eager", "attention.equation", "bf16"),
    ],
)
def test_a_row_holds(name: str, slug: str, dtype: str) -> None:
    (check,) = (c for c in checks() if c.requirement.slug == slug)
    result = run_check(CheckRun(check, dtype), load(name), FEW, "slug", {})
    assert result.status in (Status.PASS, Status.DEVIATION), result.message


def test_a_law_of_ties_does_not_apply_to_who_leaves_them_open() -> None:
    (check,) = (c for c in checks() if c.requirement.slug == "mixture_of_experts.ties")
    assert run_check(CheckRun(check, "fp32"), load("transformers"), FEW, "slug", {}).status is Status.NOT_APPLICABLE


def test_what_is_known_to_fail_fails() -> None:
    target = load("transformers").implementation
    x = torch.tensor([300.0], dtype=torch.float16, requires_grad=True)
    target.gelu(x, approximate="tanh").backward()
    assert x.grad is not None
    assert x.grad.isnan()
    assert target.warmup_cosine(15, max_lr=1.0, warmup_steps=0, total_steps=10) > 0
    growing = load("transformers:eager").implementation.kv_cache(1, 1, 9, 2, window=1)
    rows = torch.zeros(1, 1, 1, 2)
    shown = [growing.update(rows, rows)[0].shape[2] for _ in range(3)]
    assert shown == [1, 2, 3]
