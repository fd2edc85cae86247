"""The target whose kernels need a GPU, or an interpreter in its place."""

from __future__ import annotations

import pytest
import torch
from click.testing import CliRunner

from veriformer.impl import BACKENDS
from veriformer.verify import load
from veriformer.verify.cli import verify
from veriformer.verify.targets import impl

pytestmark = pytest.mark.usefixtures("warm")


def test_the_target_takes_attention_from_the_kernels_where_they_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impl, "require", lambda: None)
    target = load("impl:triton").implementation
    assert target.attention is BACKENDS["triton"]
    assert target.softmax is load("impl:reference").implementation.softmax


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_elsewhere_the_command_says_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    found = CliRunner().invoke(verify, ["impl:triton", "--only", "attention"])
    assert found.exit_code == 2
    assert "target 'impl:triton' could not be loaded, it raised UnavailableError: triton: expected" in found.output


def test_the_module_has_no_other_targets_to_build() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = impl.nothing
