"""x-transformers under the contract's names: found, claimed, and what is known of it."""

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

pytest.importorskip("x_transformers")

FEW = Profile(name="few", examples=5, shrinks=0, timeout_s=60)
NAMES = ("x-transformers", "x-transformers:flash")


@pytest.mark.parametrize("name", NAMES)
def test_every_operation_is_provided_or_has_a_reason(name: str) -> None:
    target = load(name)
    lacking = {operation for operation in POSITIONAL if not target.operation(operation)}
    assert lacking == set(target.claims.not_provided)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "slug", ["attention.equation", "attention.grouped_is_copied", "multi_head_attention.equation", "rope.equation"]
)
def test_a_row_holds(name: str, slug: str) -> None:
    (check,) = (c for c in checks() if c.requirement.slug == slug)
    result = run_check(CheckRun(check, "fp32"), load(name), FEW, "slug", {})
    assert result.status is Status.PASS, result.message


@pytest.mark.whole
@pytest.mark.parametrize("operation", ["causal_lm", "masked_lm", "seq2seq_lm"])
def test_its_models_are_models(operation: str) -> None:
    (check,) = (c for c in checks() if c.requirement.slug == f"{operation}.batch")
    assert run_check(CheckRun(check, "fp64"), load("x-transformers"), FEW, "slug", {}).status is Status.PASS


def test_its_kernel_aligns_more_queries_than_keys_otherwise_than_it_does_itself() -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 1, 3, 2), torch.randn(1, 1, 2, 2), torch.randn(1, 1, 2, 1)
    itself, kernel = (load(name).implementation.attention(q, k, v, is_causal=True) for name in NAMES)
    assert torch.equal(itself[0, 0, 1], v[0, 0, 0])
    assert not torch.equal(kernel[0, 0, 1], v[0, 0, 0])
