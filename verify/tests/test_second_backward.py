"""Gradients are taken twice in checks and in scripts; a graph that cannot be kept is no fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.negative_controls.common import GOOD
from tests.negative_controls.rare import Twice
from veriformer.verify.catalogue.checks import ALL
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Result, Status
from veriformer.verify.scripts.script import Recorded, script
from veriformer.verify.targets.loading import wrap


class Once(torch.autograd.Function):
    """``apply(x)``: x itself, of which the gradient can be taken once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.left = 1
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        ctx.left -= 1
        if ctx.left < 0:
            raise RuntimeError("the graph has been freed")
        return g


def purity(through: type[torch.autograd.Function]) -> Result:
    target = SimpleNamespace(**{**vars(GOOD), "silu": lambda x: GOOD.silu(through.apply(x))})
    check = next(check for check in ALL if check.requirement.slug == "silu.purity")
    return run_check(CheckRun(check, "fp32"), wrap(target), PROFILES["default"], "twice", {})


def test_a_graph_that_is_freed_is_no_fault() -> None:
    assert purity(Once).status is Status.PASS


def test_a_gradient_that_grows_is_found_and_its_script_takes_it_twice() -> None:
    result = purity(Twice)
    assert result.status is Status.FAIL
    assert result.counterexample is not None
    assert "retain_graph=keep" in result.counterexample.script


def test_a_script_judges_the_second_gradient() -> None:
    z = torch.tensor([0.5, 1.0])
    call = Recorded("r0", "twice", ("z",), {"z": z}, ("z",), torch.ones(2), again=True)
    loader = "from tests.negative_controls.rare import Twice\n\nclass target:\n    twice = staticmethod(Twice.apply)"
    text = script("title", loader, [call], ["raise SystemExit(int(r0_grad_z.sum()))"])
    with pytest.raises(SystemExit, match="4"):
        exec(compile(text, "script", "exec"), {})
