"""Right models that lack what only some models have are not accused; one that cannot be built is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.mutants.staged_reference.model import Decoder, Shape
from veriformer.verify.operations.models.subject import subject
from veriformer.verify.results import Result, Status
from veriformer.verify.targets.loading import wrap
from veriformer.verify.targets.target import Target

PROFILE = Profile(name="right", examples=12, shrinks=0, timeout_s=60)


class NeverOff(Decoder):
    """Gradient checkpointing can be enabled, and not disabled."""

    gradient_checkpointing_disable: Any = property()


class OwnSwitch(Decoder):
    """Model whose attention backend can be set, without an attribute that tells which is in use."""

    def set_attn_implementation(self, name: str) -> None:
        """Eager attention and PyTorch's are one here."""
        if name not in ("eager", "sdpa"):
            raise KeyError(name)


class SilentTrain(Decoder):
    """``train`` returns nothing, as where a part of a model is kept in evaluation mode by hand."""

    def train(self, mode: bool = True) -> Any:
        super().train(mode)


def judged(slug: str, target: Target) -> Result:
    (check,) = (c for c in checks() if c.requirement.slug == slug)
    return run_check(CheckRun(check, check.dtypes[0]), target, PROFILE, "right", {})


def provided(operation: str, make: Callable[[], Any]) -> Target:
    return wrap(SimpleNamespace(**{operation: make}))


@pytest.mark.parametrize(
    ("kind", "name"), [(NeverOff, "checkpointing"), (OwnSwitch, "backends"), (SilentTrain, "checkpointing")]
)
def test_a_right_model_passes(kind: type[Decoder], name: str) -> None:
    target = provided("causal_lm", lambda: kind(Shape()))
    result = judged(f"causal_lm.{name}", target)
    assert result.status is Status.PASS, f"{result.status}: {result.message}"
    assert not any(module.training for module in subject(target, "causal_lm").model().modules())


def test_a_switch_that_knows_none_of_the_names_is_not_judged() -> None:
    class Other(OwnSwitch):
        def set_attn_implementation(self, name: str) -> None:
            raise NotImplementedError(name)

    assert judged("causal_lm.backends", provided("causal_lm", lambda: Other(Shape()))).status is Status.NOT_APPLICABLE


@pytest.mark.parametrize("slug", ["causal_lm.contract", "masked_lm.contract", "seq2seq_lm.half_loss"])
def test_a_model_that_cannot_be_built_is_at_fault(slug: str) -> None:
    def make() -> Any:
        raise RuntimeError("no weights here")

    result = judged(slug, provided(slug.partition(".")[0], make))
    assert result.status is Status.FAIL
    assert str(result.message).startswith("raised RuntimeError: no weights here\nin test_models_right.py:")
