"""Sizes drawn together: within the budget, at the edges of tiles and between, large in pairs; and what is told."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from veriformer import impl
from veriformer.verify.catalogue.selection import select
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.examples import prepared
from veriformer.verify.judging.arguments import fresh
from veriformer.verify.judging.coverage import Coverage
from veriformer.verify.judging.row import plan
from veriformer.verify.judging.trial import BUDGET as OF_A_CALL
from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.attention.multi_head_attention.record import draw_multi_head
from veriformer.verify.operations.layers.transformer_block.record import draw_block
from veriformer.verify.operations.optimization.tensor_lists import shapes_of
from veriformer.verify.results import Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import extent
from veriformer.verify.strategies.extents import draw_sizes
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.target import Target

some = hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
RANGES = {"n_q": (1, 600), "n_k": (2, 1200), "d": (2, 256)}
TIES = (("n_q", "n_k"),)
BUDGET = 2.0**17


def work(s: Any) -> float:
    return float(s["n_q"] * s["n_k"] * (1 + s["d"] / 64))


def many(draw: Callable[[Any], Any], number: int = 300) -> list[Any]:
    """Return the draws of so many examples, ten by ten, as checks draw them."""
    found: list[Any] = []
    for i in range(number // 10):
        prepared(lambda data: found.append(draw(data.draw)), f"seed {i}", 10)()
    return found


@some
@given(st.data(), st.integers(0, 3), st.integers(0, 2000))
def test_a_size_is_in_its_range(data: st.DataObject, least: int, more: int) -> None:
    assert least <= data.draw(extent(least, least + more)) <= least + more


def test_sizes_are_log_uniform_and_often_at_the_edges_of_tiles() -> None:
    found = many(lambda draw: draw(extent(1, 1023)))
    octaves = Counter(int(math.log2(n)) for n in found)
    assert len(octaves) == 10
    assert max(octaves.values()) < 4 * min(octaves.values())
    near = [n for n in found if n > 64 and min(n % 16, -n % 16) <= 1]
    assert 0.35 < len(near) / sum(n > 64 for n in found) < 0.8


def test_a_size_shrinks_to_the_least_that_fails() -> None:
    settings = hypothesis.settings(database=None, deadline=None, derandomize=True)
    assert hypothesis.find(extent(1, 5000), lambda n: n > 64, settings=settings) == 65
    assert hypothesis.find(extent(1, 5000), lambda n: True, settings=settings) == 1


@some
@given(st.data())
def test_sizes_together_stay_within_the_budget(data: st.DataObject) -> None:
    found = draw_sizes(data.draw, RANGES, work, BUDGET, TIES)
    assert work(found) <= BUDGET
    assert all(low <= found[name] <= high for name, (low, high) in RANGES.items())


@pytest.mark.whole
def test_every_two_axes_are_large_together() -> None:
    found = many(lambda draw: draw_sizes(draw, RANGES, work, BUDGET, TIES))
    for one, other in (("n_q", "n_k"), ("n_k", "d"), ("n_q", "d")):
        assert sum(s[one] > 64 and s[other] > 64 for s in found) > 10, (one, other)
    assert any(min(s.values()) > 64 for s in found)
    assert 0.2 < sum(s["n_q"] == s["n_k"] for s in found) / len(found) < 0.5


def test_a_budget_that_the_smallest_sizes_exceed_gives_these() -> None:
    ranges = {"n": (5, 9), "m": (7, 9)}
    found = many(lambda draw: draw_sizes(draw, ranges, lambda sizes: sizes["n"] * sizes["m"], 1.0), 20)
    assert found == [{"n": 5, "m": 7}] * 20


def test_what_was_large_is_counted_once_an_example() -> None:
    counts: Counter[str] = Counter()
    coverage = Coverage(counts)
    coverage.sizes({"n_k": 65, "d_k": 64, "d_v": 200})
    for _ in range(2):
        coverage.call("attention", {"q": torch.ones(4, 4).mT[:, 1:], "mask": torch.ones(1), "bias": None})
    assert counts == dict.fromkeys(
        ("n_k > 64", "d_v > 64", "d_v > 64 and n_k > 64", "n_k > 64 and mask", "d_v > 64 and mask",
         "n_k > 64 and strides", "d_v > 64 and strides"), 1
    )  # fmt: skip


def _result(slug: str, dtype: str = "fp32", profile: str = "quick", **operations: Any) -> Any:
    target = Target("mine", SimpleNamespace(**{**vars(impl), **operations}), Claims(), None, "")
    (row,) = (row for row in plan(select((slug,)), (dtype,)) if row.check.requirement.slug == slug)
    return run_check(row, target, PROFILES[profile], "slug", {})


@pytest.mark.whole
def test_a_row_tells_what_it_has_covered() -> None:
    found = _result("attention.long")
    assert found.status is Status.PASS
    assert found.covered["d_v > 64 and n_k > 64"] >= 3


@pytest.mark.whole
def test_wide_heads_over_many_keys_are_tried_in_quick() -> None:
    def last_keys(q: Any, k: Any, v: Any, **options: Any) -> Any:
        wide = q.shape[-1] > 64 and not any(options.values())
        return impl.attention(q, *((x[:, :, -64:] if wide else x) for x in (k, v)), **options)

    assert _result("attention.long", attention=last_keys).status is Status.FAIL


@pytest.mark.whole
@pytest.mark.parametrize("operation", ["softmax", "layer_norm"])
def test_the_tail_of_wide_rows_is_tried_in_quick(operation: str) -> None:
    def broken(x: Any, *args: Any, **options: Any) -> Any:
        y = getattr(impl, operation)(x, *args, **options)
        n = x.shape[-1] - x.shape[-1] % 128
        return torch.cat((y[..., :n], 0.75 * y[..., n:]), -1) if x.ndim and n else y

    assert _result(f"{operation}.long", **{operation: broken}).status is Status.FAIL


def test_between_the_entries_of_a_strided_argument_lies_nan() -> None:
    x = torch.arange(12.0).view(3, 4)[:, ::2]
    copy = fresh(x, False)
    assert torch.equal(copy, x)
    assert copy.stride() == x.stride()
    assert copy.as_strided((11,), (1,))[1::2].isnan().all()
    again = eval(literal(x), {"torch": torch, "nan": math.nan})
    assert torch.equal(again, x)
    assert again.stride() == x.stride()
    assert again.as_strided((11,), (1,))[1::2].isnan().all()


def test_halves_are_multiplied_whatever_lies_behind_a_row() -> None:
    wide = torch.full((32, 14), math.nan, dtype=torch.bfloat16)
    wide[:, :13] = 1.0
    one = torch.ones(13, 24, dtype=torch.bfloat16)
    y = impl.lm_head(wide[:, :13].requires_grad_(), one.mT)
    assert torch.equal(y, torch.full_like(y, 13.0))
    w = torch.ones(13, 13, dtype=torch.bfloat16, requires_grad=True)
    impl.lm_head(wide[:, :13].detach(), w).backward(wide[:, :13])
    assert w.grad is not None
    assert torch.equal(w.grad, torch.full_like(w, 32.0))


@pytest.mark.parametrize("draw", [draw_multi_head, draw_block], ids=["multi_head_attention", "transformer_block"])
def test_what_a_target_takes_nearby_is_within_the_budget_too(draw: Callable[[Trial], Any]) -> None:
    """Heads as narrow as d / H make d out of heads and widths: the work is that of what is made."""
    name = "transformer_block" if draw is draw_block else "multi_head_attention"
    refused = dict.fromkeys(("heads narrower or wider than d / H", "d_v ≠ d_k", "d_out ≠ d", "grouped heads"), "")
    target = Target(name, SimpleNamespace(**{name: getattr(impl, name)}), Claims(), None, "")
    target = target.within({name: Domain(refused=refused)})
    numbers = []

    def body(data: st.DataObject) -> None:
        trial = Trial(target, name, POSITIONAL[name], "fp32", "cpu", data)
        trial.only_large()
        arguments = draw(trial)
        given = [*arguments.values(), *arguments.get("params", arguments).values()]
        numbers.append(sum(x.numel() for x in given if isinstance(x, torch.Tensor)))
        x, weights = arguments["x"], arguments.get("params", arguments)
        assert weights["w_q"].shape[1] == x.shape[-1]

    for start in range(3):
        prepared(body, f"nearby|{start}", 10)()
    assert len(numbers) >= 20
    assert max(numbers) <= 16 * OF_A_CALL  # a weight counts as a quarter, and half of that in a block


def test_late_tensors_of_a_list_have_many_entries_too() -> None:
    found = [shapes_of(np.random.default_rng(seed), 40, 5000) for seed in range(40)]
    entries = [[math.prod(shape) for shape in shapes] for shapes in found]
    assert all(max(one) > 4900 and len(one) == 40 for one in entries)
    assert 10 < sum(sum(n > 50 for n in one[20:]) > 1 for one in entries) < 30
    assert {len(shape) for shapes in found for shape in shapes} == {0, 1, 2}


def _broken_mlp(x: Any, w1: Any, *args: Any, **options: Any) -> Any:
    y = impl.mlp(x, w1, *args, **options)
    return y * (1 + (x.ndim > 2 and x.shape[-2] > 16 and w1.shape[1] > 32))


@pytest.mark.whole
def test_rows_of_a_large_call_lie_on_several_axes() -> None:
    assert _result("mlp.long", mlp=_broken_mlp).status is Status.FAIL


@pytest.mark.parametrize("requirement", ["cached_attention.gradient", "transformer_block.layout", "softmax.batch"])
def test_half_of_the_calls_of_a_law_are_large(requirement: str) -> None:
    covered = _result(requirement, "fp64").covered
    assert sum(n for what, n in covered.items() if "and" not in what) >= 6


@pytest.mark.whole
def test_long_texts_are_cut_into_long_pieces() -> None:
    def short_pieces(text: str, table: dict[str, float]) -> Any:
        return impl.unigram_segment(text, {piece: x for piece, x in table.items() if len(piece) <= 16})

    assert _result("unigram_segment.equation", unigram_segment=short_pieces).status is Status.FAIL
