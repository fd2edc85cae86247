"""Models of transformers as targets: found by name, built small, and judged."""

from __future__ import annotations

import pytest

from veriformer.verify import targets
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Status
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.kinds import MODELS
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.transformers_models import ARCHITECTURES

pytest.importorskip("transformers")

ONE = Profile(name="one", examples=5, shrinks=0, timeout_s=60)


def test_there_are_decoders_encoders_and_both() -> None:
    kinds = [architecture.operation for architecture in ARCHITECTURES.values()]
    assert {kind: kinds.count(kind) >= 2 for kind in MODELS} == dict.fromkeys(MODELS, True)
    assert kinds.count("causal_lm") >= 8


def test_an_unknown_architecture_is_answered_with_those_that_ship() -> None:
    with pytest.raises(TargetError, match="expected one of gpt2"):
        load("transformers:nothing")


@pytest.mark.parametrize(("name", "slug"), [("gpt2", "causal_lm.left_padding"), ("bert", "masked_lm.batch")])
def test_a_row_holds(name: str, slug: str) -> None:
    (check,) = (c for c in checks() if c.requirement.slug == slug)
    result = run_check(CheckRun(check, "fp64"), load(f"transformers:{name}"), ONE, "slug", {})
    assert result.status in (Status.PASS, Status.DEVIATION), result.message


def test_what_is_known_of_an_architecture_is_written_beside_the_targets() -> None:
    known = [name for name in ARCHITECTURES if targets.known_failures(f"transformers:{name}")]
    assert known == ["bloom", "mistral", "mixtral", "gemma2", "gemma3", "t5"]
