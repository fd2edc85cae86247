"""Lines, branches and parameters of somebody's code that a run has seen, and has not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from veriformer.verify import Results, check
from veriformer.verify.engine.extent import joined, probed, seen_of, spans, together
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.unseen import unseen
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.statements import derivative_beside, statements
from veriformer.verify.targets.values import others
from veriformer.verify.targets.watch import Watch, roots_of

sys.path.insert(0, str(Path(__file__).parent))

from made_results import results, row

pytestmark = pytest.mark.usefixtures("warm")

NORM = """
import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, dim, eps=1e-5, order="last", fused=False, shift=0.0, dropout=0.0, one_plus=False):
        super().__init__()
        if dim < 1:
            raise ValueError("dim: expected at least 1")
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps, self.order, self.fused, self.shift = eps, order, fused, shift
        self.dropout, self.one_plus = nn.Dropout(dropout), one_plus

    def forward(self, x):
        if self.order == "first":
            x = x.movedim(1, -1)
            x = self.norm(x)
            return x.movedim(-1, 1)
        if self.fused:
            x = nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
            return self.dropout(x)
        return self.dropout(self.norm(x))

    def norm(self, x):
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        variance = (centred * centred).mean(-1, keepdim=True)
        weight = 1 + self.weight if self.one_plus else self.weight
        return centred * torch.rsqrt(variance + self.eps) * weight + self.bias + self.shift

    def never_called(self):
        return self.weight
"""
"""A right norm with a branch that no reading takes, a way of its own and parameters that nobody knows."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Results:
    path = tmp_path_factory.mktemp("code") / "mine.py"
    path.write_text(NORM)
    return check(path, only=["layer_norm.equation", "layer_norm.contract"], dtype=["fp32"])


def test_a_branch_on_a_parameter_that_never_ran_leaves_no_verdict(judged: Results) -> None:
    domain = judged.domain["layer_norm"]
    assert domain.never_run == domain.untaken == (("mine.py", 18, 20),)
    assert (judged.exit_status, judged.gaps) == (3, ["lines 18 to 20 never ran"])


def test_what_the_code_knows_is_tried_and_agrees_or_is_told(judged: Results) -> None:
    assert judged.domain["layer_norm"].never_varied == (
        "order",
        "shift",
    )  # not the rate, nor what another reading explains
    assert judged.domain["layer_norm"].answered == ("fp32",)


def test_other_traces_are_put_back_and_calls_beyond_a_number_are_not_watched(tmp_path: Path) -> None:
    path = tmp_path / "mine_too.py"
    path.write_text("def softmax(z, dim=-1):\n    e = (z - z.amax(dim, True)).exp()\n    return e / e.sum(dim, True)\n")
    target = load(str(path))
    watch, before = target.watch, sys.gettrace()
    assert watch is not None
    watch.begin()
    for _ in range(70):
        with target.watching("softmax"):
            assert sys.gettrace() is not before or watch._left == 0
    assert sys.gettrace() is before
    assert load("impl").watch is None


def test_what_several_processes_have_seen_is_put_together(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text("def f(x, flag):\n    if flag:\n        x = x + 1\n    else:\n        x = x - 1\n    return x\n")
    space: dict[str, object] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    parts = []
    for flag in (True, False):
        watch = Watch(frozenset((str(path),)))
        watch.roots = {"op": roots_of(space["f"], watch.files)}
        with watch.watching("op"):
            space["f"](1, flag)  # type: ignore[operator]
        parts.append({"op": seen_of(watch, "op")})
    assert [sorted(line for _, line in part["op"]["ran"]) for part in parts] == [[2, 3, 6], [2, 5, 6]]
    whole = together(parts)["op"]
    assert [line for _, line in whole["ran"]] == [2, 3, 5, 6]
    assert whole["values"] == {"flag": ["False", "True"], "x": ["1"]}
    assert spans([("f.py", 3), ("f.py", 2), ("f.py", 7)]) == (("f.py", 2, 3), ("f.py", 7, 7))


def test_a_whole_run_has_not_seen_what_no_part_of_it_has_seen() -> None:
    one, other = (
        Domain(answered=(dtype,), never_run=(lines,), untaken=(lines,), never_varied=names, flags=names)
        for dtype, lines, names in (
            ("fp32", ("f.py", 1, 5), ("order", "mask")),
            ("fp64", ("f.py", 3, 8), ("shift", "mask")),
        )
    )
    both = ("f.py", 3, 5)
    parts = [results([row("softmax.equation")], domain={"softmax": part}) for part in (one, other)]
    nothing_run = results([row("gelu.equation")], domain={"softmax": Domain()})
    assert joined([*parts, nothing_run]) == {
        "softmax": Domain(
            answered=("fp32", "fp64"), never_run=(both,), untaken=(both,), never_varied=("mask",), flags=("mask",)
        )
    }
    assert probed({"softmax": one}) == probed({"softmax": other}) == {"softmax": Domain()}


def test_statements_that_refuse_or_tell_are_none_and_branches_are_known(tmp_path: Path) -> None:
    path = tmp_path / "g.py"
    path.write_text(
        """class A:
    def __init__(self, width, causal):
        self.causal, self.fast = causal, hasattr(print, "fast")

    def forward(self, x, mask=None):
        \"\"\"Say something.\"\"\"
        if x is None:
            message = "x"
            raise ValueError(message)
        assert x
        if self.fast:
            y = 1
        if self.training:
            y = 2
        if self.causal:
            print("causal")
        if self.causal and x:
            y = 3
        if x and self.causal:
            if x.device != self.init_device:
                y = 4
        if x.dim() == 2 or len(x.shape) == 3 or x.ndim > 4:
            y = 5
        if self.causal > 0:
            y = F.dropout(x, self.causal)
        if mask is not None:
            return x
        z = (
            x
        )
        return z
"""
    )
    found = {(one.first, one.last): one.branch for one in statements(str(path), 5)}
    assert found == {
        **{(line, line): False for line in (11, 12, 13, 14, 17, 19, 21, 22, 23, 26)},
        (18, 18): True,
        (20, 20): True,
        (27, 27): True,
        (28, 30): True,
        (31, 31): True,
    }


def test_a_derivative_by_hand_is_no_part_of_what_autograd_runs(tmp_path: Path) -> None:
    path = tmp_path / "h.py"
    path.write_text(
        """class LayerNorm:
    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def backward(g, cache):
        return g

class Swish(torch.autograd.Function):
    def forward(ctx, x):
        return x

    def backward(ctx, g):
        return g

def forward(x):
    return x
"""
    )
    assert [derivative_beside(str(path), first) for first in (2, 11, 17)] == [6, None, None]


def test_values_to_try_are_those_that_the_code_knows(tmp_path: Path) -> None:
    path = tmp_path / "h.py"
    path.write_text(
        "def f(x, order='last'):\n    if order == 'first' or order in ('middle', 'last'):\n        return x\n"
    )
    assert others("order", "'last'", [str(path)], built=False) == ["first", "middle"]
    assert others("config.fused", "False", [], built=True) == [True]
    assert others("attn_dropout", "0.0", [], built=True) == [0.1]
    assert others("attn_dropout", "0.125", [], built=True) == [0.0]
    assert others("shift", "0.0", [], built=True) == []
    assert others("ffn_dim_multiplier", "None", [], built=True) == [1.0]
    assert others("mask", "None", [], built=False) == []


def test_gradients_that_raise_leave_a_run_without_a_verdict() -> None:
    for said, expected in (
        ("TypeError: no tensor", 1),
        ("the result carries no graph", 0),
        ("NotImplementedError: no", 0),
    ):
        assert len(unseen({"gelu": Domain(refused={"gradients": said})})) == expected


FILTERS = """import torch


def filter_logits(logits, top_k=0, top_p=1.0, fill=-float("inf")):
    if top_k > 0:
        least = torch.topk(logits, min(top_k, logits.size(-1))).values[..., -1:]
        logits = logits.masked_fill(logits < least, fill)
    if top_p < 1.0:
        p, order = logits.softmax(-1).sort(descending=True)
        beyond = p.cumsum(-1) - p >= top_p
        logits = logits.masked_fill(beyond.gather(-1, order.argsort(-1)), fill)
    return logits
"""


@pytest.mark.whole
def test_what_another_operation_of_the_code_ran_and_varied_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "filters.py"
    path.write_text(FILTERS)
    found = check(path, only=["top_k_filter.equation", "top_p_filter.nucleus"], dtype=["fp32"])
    assert {name: domain.never_run for name, domain in found.domain.items()} == {"top_k_filter": (), "top_p_filter": ()}
    assert {domain.never_varied for domain in found.domain.values()} == {("fill",)}
    assert found.exit_status == 0


def test_a_cache_that_a_model_is_never_given_leaves_no_verdict() -> None:
    rows = [row("causal_lm.equation"), row("softmax.equation")]
    found = results(rows, domain={"softmax": Domain(answered=("fp32",))})
    assert found.exit_status == 0
    pins = [{"operation": name, "name": "GPT", "unread": ["cache", "scale"]} for name in ("causal_lm", "softmax")]
    found.implementation["recognised"] = pins
    assert (found.exit_status, found.unseen) == (3, ["`cache` was left out"])
    found.implementation["recognised"] = pins[1:]  # a probe asked it, whose domain says what was left out
    assert (found.exit_status, found.unseen) == (0, [])
