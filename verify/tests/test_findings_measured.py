"""Findings of what was measured: the format in which results are computed, and global state that is changed."""

from __future__ import annotations

import sys
from pathlib import Path

from veriformer.spec.requirement import Weight
from veriformer.verify.engine.run import store_findings
from veriformer.verify.results import Status
from veriformer.verify.results.domain import Domain

sys.path.insert(0, str(Path(__file__).parent))

from made_results import failing, finding, results, row


def test_a_coarser_format_is_one_finding_of_its_own_weight() -> None:
    run = results([row()], domain={"rms_norm": Domain(precision={"fp64": "bf16", "fp32": "bf16"})})
    store_findings(run, {})
    (one,) = run.findings
    assert one.what == "rms_norm: computed in bfloat16 for float64 and float32 input"
    assert one.weight is Weight.IMPRECISE
    assert one.dtypes == ("fp64", "fp32")


def test_global_state_that_is_changed_is_a_finding_before_what_is_fragile() -> None:
    run = results([row()], global_state={"softmax": ["the default dtype"], "silu": []})
    store_findings(run, {})
    (one,) = run.findings
    assert one.what == "softmax: changes global state: the default dtype"
    assert one.weight is Weight.WRONG


def test_what_computes_as_it_is_asked_to_has_no_such_finding() -> None:
    run = results([row()], domain={"rms_norm": Domain(provided=("weight",))})
    store_findings(run, {})
    assert run.findings == []


def test_a_row_is_no_graver_than_what_explains_it() -> None:
    explained = finding("f1", Weight.IMPRECISE)
    for strict, status in ((False, Status.ADVICE), (True, Status.FAIL)):
        run = results([failing(weight="fragile")], strict=strict)
        store_findings(run, {"attention": [explained]})
        assert run.results[0].status is status
    run = results([failing(weight="fragile")])
    store_findings(run, {"attention": [finding("f1", Weight.FRAGILE)]})
    assert run.results[0].status is Status.FAIL
