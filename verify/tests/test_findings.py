"""Findings of whole runs: at most one for each root cause, named, with its condition, and with the rows it explains."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import adapters
from tests.made_results import row
from tests.warm import INTERPRETER
from veriformer import impl
from veriformer.spec.requirement import Weight
from veriformer.verify import check, load
from veriformer.verify.domain.probe import _describe
from veriformer.verify.findings.everything import by_operation
from veriformer.verify.findings.sentence import raises
from veriformer.verify.judging.judge import Violation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.results import Results, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.loading import wrap

pytestmark = pytest.mark.usefixtures("warm")
OPTIONS = {"profile": "quick", "dtype": ["fp64", "fp32"]}


def zero_scale(q: Any, k: Any, v: Any, *, scale: Any = None, **options: Any) -> Any:
    return impl.attention(q, k, v, scale=scale or None, **options)


def narrow_swiglu(x: Any, w_gate: Any, w_up: Any, w_down: Any) -> Any:
    return (torch.nn.functional.silu(x @ w_gate) * (x @ w_up) + 1e-3) @ w_down


def eps_on_deviation(x: Any, weight: Any = None) -> Any:
    y = x / (x.square().mean(-1, keepdim=True).sqrt() + 1e-4)
    return y if weight is None else y * weight


def experts_by_topk(x: Any, router: Any, w1: Any, b1: Any, w2: Any, b2: Any, *, top_k: int = 2) -> Any:
    scores, chosen = (x @ router).topk(top_k, -1)
    hidden = torch.nn.functional.gelu(torch.einsum("...d,...kdh->...kh", x, w1[chosen]) + b1[chosen])
    said = torch.einsum("...kh,...kho->...ko", hidden, w2[chosen]) + b2[chosen]
    return (scores.softmax(-1)[..., None] * said).sum(-2)


class _Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g


def doubled_weight(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    scaled = None if weight is None else _Doubled.apply(weight)  # type: ignore[no-untyped-call]
    return impl.layer_norm(x, scaled, bias, eps=eps)


@cache
def results(name: str, operation: str, only: tuple[str, ...] = ()) -> Results:
    target = load(name).implementation if ":" in name else SimpleNamespace(**{operation: globals()[name]})
    return check(target, only=list(only or (operation,)), **OPTIONS)  # type: ignore[arg-type]


def grave(found: Results) -> list[Finding]:
    return [one for one in found.findings if not one.weight.advice]


def half_the_rows(z: Any, dim: int = -1) -> Any:
    return torch.softmax(z, dim).reshape(-1)[: z.numel() // 2].reshape(-1)[z.numel()]


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_an_exception_is_told_with_its_message_and_the_line_of_the_author() -> None:
    with pytest.raises(Violation) as caught:
        trial_of(half_the_rows).call({"z": torch.ones(2, 2)})
    place = f"test_findings.py:{line_of(half_the_rows, 'numel')}"
    said = "index 4 is out of bounds for dimension 0 with size 2"
    assert raises(str(caught.value)) == f"raises IndexError ({said}, {place})"


def test_of_an_exception_without_a_message_the_code_is_told() -> None:
    with pytest.raises(Violation) as caught:
        trial_of(adapters.of_squares).call({"z": torch.ones(2, 3)})
    code = "assert z.ndim < 2 or z.shape[0] == z.shape[1]"
    place = f"adapters.py:{line_of(adapters.of_squares, 'assert')}"
    assert raises(str(caught.value)) == f"raises AssertionError ({code}, {place})"
    assert _describe(caught.value.__cause__ or Exception()) == f"AssertionError: {code}"


def test_where_nothing_of_the_author_is_on_the_way_no_line_is_told() -> None:
    with pytest.raises(Violation) as caught:
        trial_of(torch.softmax).call({"z": torch.ones(2), "dim": 5})
    assert "\n" not in str(caught.value)


def trial_of(function: Any) -> Trial:
    nothing: Any = None
    return Trial(wrap(SimpleNamespace(softmax=function)), "softmax", ("z",), "fp32", "cpu", nothing)


def test_the_gravest_rows_are_looked_into_first() -> None:
    weights = {"softmax": ["imprecise"], "rope": ["fragile", "wrong"], "gelu": ["wrong"]}
    rows = [row(f"{name}.law", Status.FAIL, weight=one) for name, some in weights.items() for one in some]
    assert list(by_operation(rows)) == ["gelu", "rope", "softmax"]


@pytest.mark.whole
def test_what_holds_has_no_finding_and_costs_nothing() -> None:
    found = check(SimpleNamespace(softmax=impl.softmax), only=["softmax"], **OPTIONS)  # type: ignore[arg-type]
    assert found.findings == []
    found.raise_for_findings()


@pytest.mark.whole
def test_a_known_bug_is_one_finding_that_names_it() -> None:
    found = results("mutant:LN-02", "layer_norm")
    (one,) = grave(found)
    assert one.what == "layer_norm: ε is added to the standard deviation"
    assert one.precedents == ("https://github.com/hkproj/pytorch-transformer/pull/31",)
    assert one.when is None
    assert one.confirmed
    assert set(one.rows) == {row.key for row in (*found.violations, *found.advice)}
    assert {row.finding for row in found.violations} == {one.id}


@pytest.mark.whole
def test_a_known_bug_is_named_with_the_constant_that_it_hides() -> None:
    (one, *_) = grave(results("eps_on_deviation", "rms_norm", ("rms_norm.equation",)))
    assert one.what.startswith("rms_norm: ε is added to the standard deviation")
    assert one.what.endswith("with eps = 0.0001")


@pytest.mark.whole
def test_an_option_whose_value_is_not_heard_is_said_so() -> None:
    (one,) = grave(results("zero_scale", "attention", ("attention.equation", "attention.scale")))
    assert one.what == "attention: a scale of 0 is taken as not given"
    assert one.when == "with a scale of 0"
    assert one.weight == "fragile"  # of a degenerate constant
    assert one.confirmed
    assert one.fix == "ask whether scale is None, not whether it is true: a scale of 0 is given"


@pytest.mark.whole
def test_a_wrong_gradient_is_named_by_its_argument() -> None:
    rows = ("layer_norm.equation", "layer_norm.gradient", "layer_norm.affine")
    (one,) = grave(results("doubled_weight", "layer_norm", rows))
    assert one.what == "layer_norm: the gradient of weight is 2 times what it should be"


def tripled(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return 3 * (h @ weight.T)


def turned(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return -(h @ weight.T)


def by_width(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return h @ weight.T * weight.shape[1]


def by_class(h: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return h @ weight.T * torch.arange(1, weight.shape[0] + 1, dtype=h.dtype)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("tripled", r"the result is 3 times what it should be"),
        ("turned", r"the result has the wrong sign"),
        (
            "by_width",
            r"the result is a multiple of what it should be, by another factor in each call \(.* to .*\)",
        ),
        ("by_class", r"the result is wrong.*"),
    ],
)
def test_what_is_a_multiple_is_told_by_its_factor(name: str, what: str) -> None:
    found = grave(results(name, "lm_head", ("lm_head.equation",)))
    assert re.fullmatch(f"lm_head: {what}", found[0].what), found[0].what


@pytest.mark.whole
def test_a_cause_has_the_same_id_under_another_seed() -> None:
    ids = {
        check(SimpleNamespace(swiglu=narrow_swiglu), only=["swiglu"], seed=seed, dtype=["fp64"]).findings[0].id
        for seed in ("slug", "7")
    }
    assert len(ids) == 1


ENDS = """
import os
import torch

calls = 0

def softmax(z, dim=-1):
    global calls
    calls += 1
    if os.environ.get("ENDS") and calls > 40:
        os._exit(1)
    return torch.softmax(z, dim) + 1e-3
"""


def verified(folder: Path, source: str, python: str, **environment: str) -> Results:
    """The results of the command line on a file of this text."""
    from veriformer.verify.results import read

    (folder / "mine.py").write_text(source)
    command = [python, "-m", "veriformer.verify", "mine.py", "--only", "softmax", "--profile", "quick"]
    options = ["--jobs", "1", "--dtype", "fp64", "--json", "found.json"]
    path = os.pathsep.join(str(Path(one).resolve()) for one in sys.path if one)
    subprocess.run(
        [*command, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **environment},
        check=False,
        capture_output=True,
        timeout=300,
    )
    return read(folder / "found.json")


@pytest.mark.whole
def test_a_target_that_ends_the_process_costs_the_condition_but_no_finding(tmp_path: Path) -> None:
    found = verified(tmp_path, ENDS, sys.executable, ENDS="1")
    failed = {row.key for row in found.results if row.status in (Status.FAIL, Status.CRASH)}
    assert failed
    assert failed <= {key for one in found.findings for key in one.rows}


@pytest.mark.whole
def test_the_script_of_a_finding_runs_where_the_target_lies_elsewhere(tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    (one, *_) = grave(verified(here, ENDS, INTERPRETER))
    assert one.counterexample is not None
    there = tmp_path / "there"
    there.mkdir()
    (there / "script.py").write_text(one.counterexample["script"])
    ran = [sys.executable, "script.py"]
    assert subprocess.run(ran, cwd=there, check=False).returncode == 1, "while it lies where it lay"
    (here / "mine.py").rename(there / "mine.py")
    assert subprocess.run(ran, cwd=there, check=False).returncode == 1, "beside the script"
    right = tmp_path / "right.py"
    right.write_text("import torch\n\n\ndef softmax(z, dim=-1):\n    return torch.softmax(z, dim)\n")
    other = {**os.environ, "VERIFORMER_TARGET": str(right)}
    assert subprocess.run(ran, cwd=there, env=other, check=False).returncode == 0, "the one that is named"


@pytest.mark.whole
def test_a_choice_among_equal_scores_is_one_weakness() -> None:
    (found,) = [one for one in results("experts_by_topk", "mixture_of_experts").findings if one.witness]
    assert (found.weight, found.when, found.witness) == (Weight.WEAKNESS, "with ties", "torch.topk")
    assert "of equal scores others are chosen" in found.what
    assert found.suggestion == {"convention": "choice.ties", "value": "unspecified"}
    assert {"mixture_of_experts.equation", "mixture_of_experts.ties"} <= set(found.requirements)
