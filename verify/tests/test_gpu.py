"""What only an accelerator can show: the shipped backends on a CUDA device."""

from __future__ import annotations

import pytest
import torch

from veriformer.verify import check, load

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


@pytest.mark.parametrize("target", ["impl:reference", "impl:tiled", "impl:sdpa", "impl:triton"])
def test_every_operation_on_the_device(target: str) -> None:
    results = check(load(target).implementation, device="cuda", dtype=["fp32", "bf16", "fp16"])
    assert results.valid
    assert not results.violations, [(row.key, row.message) for row in results.violations]
