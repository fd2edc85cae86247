"""Models that compute in lower precision inside: their faults are found, and right ones are not accused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.narrow_models import FAULTS, INNER, LAWS, RIGHT, faulty
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Status
from veriformer.verify.targets.loading import wrap

PROFILE = replace(PROFILES["quick"], shrinks=0, timeout_s=120)  # a slow machine must not decide
CHECKS = {check.requirement.slug: check for check in checks() if check.operation == "causal_lm"}

BELOW_ROUNDING = {("norm-eps", "bf16"), ("norm-eps", "layers-bf16"), *(("norm-eps-second-layer", x) for x in INNER)}
"""Another eps moves less than rounding where the variance is large, as it is behind the first layer."""

TRIED = [(name, INNER[i % len(INNER)]) for i, name in enumerate(FAULTS)]
"""Each fault in one precision, and each precision with some; measured were all."""


@pytest.mark.whole
@pytest.mark.parametrize(("name", "inner"), [pair for pair in TRIED if pair not in BELOW_ROUNDING])
def test_a_fault_is_found_in_whatever_precision_it_hides(name: str, inner: str) -> None:
    target = wrap(faulty(name, inner))
    found = []
    for law in LAWS[FAULTS[name][2]]:
        found.append(run_check(CheckRun(CHECKS[f"causal_lm.{law}"], "fp32"), target, PROFILE, "narrow", {}).status)
        if found[-1] is Status.FAIL:
            return
    pytest.fail(f"{name} in {inner}: {found}")


@pytest.mark.whole
@pytest.mark.parametrize("name", ["right-bf16", "right-fp16", "right-window-layers-bf16", "right-narrow-keys"])
def test_a_right_model_is_not_accused_and_shows_something(name: str) -> None:
    target = wrap(RIGHT[name]())
    slugs = ("causality", "padding_content", "left_padding", "packing", "batch", "cache_split", "slope")
    rows = [CheckRun(CHECKS[f"causal_lm.{law}"], "fp32") for law in slugs]
    assert {row.key: run_check(row, target, PROFILE, "narrow", {}).status for row in rows} == {
        row.key: Status.PASS for row in rows
    }
