"""Tests that need an accelerator: the shipped backends on a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from veriformer.verify import check, load
from veriformer.verify.engine.journal import Journal
from veriformer.verify.engine.plan import Plan

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]


@pytest.mark.parametrize("target", ["impl:reference", "impl:tiled", "impl:sdpa", "impl:triton"])
def test_every_operation_on_the_device(target: str) -> None:
    results = check(load(target).implementation, device="cuda", dtype=["fp32", "bf16", "fp16"])
    assert results.valid
    assert not results.violations, [(row.key, row.message) for row in results.violations]


def test_a_worker_for_each_gpu_gives_what_one_process_gives(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from veriformer.verify.engine.remote import execution, run

    plan = Plan(target="impl:reference", only=("softmax", "attention.equation"), dtypes=("fp32",), device="cuda")
    journal = Journal(tmp_path / "journal")
    with execution("local", jobs=1, device="cuda") as place:
        described = place.look(plan, 20.0)
        plan = replace(plan, domains=described.domains)
        journal.begin(plan)
        found, stopped = run(plan, described, journal, place, tell=lambda result: None)
    assert stopped is None
    here = check(load("impl:reference").implementation, only=plan.only, device="cuda", dtype=["fp32"])
    assert [(row.key, row.status) for row in found.results] == [(row.key, row.status) for row in here.results]
    assert found.environment["device"] == torch.cuda.get_device_name(0)
