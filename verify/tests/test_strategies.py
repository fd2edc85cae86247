"""Promises of the strategies: recipes repeat, layouts keep values, draws are admitted by the contract."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given

from veriformer.spec.arithmetic import Exact
from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.chance import ERROR_RATE, interval
from veriformer.verify.operations.attention.attention.draws import draw_options, draw_shape, every_row_sees
from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.scripts.drivers import DRIVERS
from veriformer.verify.strategies import (
    KINDS,
    Layout,
    axes_of_scores,
    axis_of,
    choice,
    layouts,
    option,
    shapes,
    sizes,
    values,
    widths,
)
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.loading import load

few = hypothesis.settings(max_examples=20, deadline=None, derandomize=True, database=None)
fewer = hypothesis.settings(few, max_examples=8)
"""Settings of examples that are computed with 300 bits."""
TARGET = load("impl:reference")


def trial_of(data: st.DataObject, operation: str, dtype: str = "fp32") -> Trial:
    return Trial(TARGET, operation, POSITIONAL[operation], dtype, "cpu", data)


def smallest(strategy: st.SearchStrategy[Any], condition: Callable[[Any], bool] = lambda _: True) -> Any:
    settings = hypothesis.settings(database=None, deadline=None, derandomize=True)
    return hypothesis.find(strategy, condition, settings=settings)


@pytest.mark.whole
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (2, 5), (1, 1, 1), (2, 3, 4)])
def test_a_recipe_gives_the_same_finite_array_again(kind: str, shape: tuple[int, ...]) -> None:
    recipe = smallest(values((kind,)))
    if not shape:
        shape = (4,)
    x = recipe.array(*shape)
    assert x.shape == shape
    assert x.dtype == np.float64
    assert np.isfinite(x).all()
    assert (x == recipe.array(*shape)).all()


def test_kinds_show_what_they_are_named_for() -> None:
    made = {kind: smallest(values((kind,)), lambda v: v.seed > 5).array(50, 40) for kind in KINDS}
    assert set(np.unique(made["integers"])) <= {-2, -1, 0, 1, 2}
    assert len(np.unique(made["ties"])) == 2
    assert (made["one-signed"] > 0).all() or (made["one-signed"] < 0).all()
    assert (np.abs(made["offset"].mean(-1)) > 2 * made["offset"].std(-1)).mean() > 0.5
    assert (np.abs(made["peaked"]).max(-1) == 6).mean() > 0.9
    assert np.abs(made["spread"]).max() / np.abs(made["spread"]).min() > 1e3
    assert len(np.unique(made["duplicates"], axis=0)) < 50
    assert 0.3 < (made["sparse"] == 0).mean() < 0.7
    assert np.abs(made["small"]).max() < 0.1


@pytest.mark.whole
def test_everything_shrinks_to_the_simplest() -> None:
    assert smallest(values()).kind == "integers"
    assert smallest(values()).seed == 0
    assert smallest(sizes(2, 9)) == 2
    assert smallest(widths()) == 3
    assert smallest(widths(), lambda n: n < 3) == 2
    assert smallest(shapes(1, 3)) == (1,)
    assert smallest(axis_of(3)) == -1
    assert smallest(layouts()).how == "contiguous"
    assert smallest(choice("a", "b")) == "a"
    assert smallest(option("eps", None, 1.0)) == {}
    assert smallest(axes_of_scores()) == (True, True)


@given(layout=layouts(expanded=False), shape=shapes(0, 4))
@few
def test_a_layout_keeps_shape_and_values(layout: Layout, shape: tuple[int, ...]) -> None:
    x = torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    laid = layout.of(x)
    assert laid.shape == x.shape
    assert torch.equal(laid, x)


def test_layouts_differ_in_strides() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert not Layout("transposed", 0).of(x).is_contiguous()
    assert not Layout("sliced", 2).of(x).is_contiguous()
    expanded = Layout("expanded", 1).of(x)
    assert expanded.stride()[1] == 0
    assert (expanded == x[:, :1]).all()


def test_choices_of_equal_numbers_of_other_types_are_not_confused() -> None:
    assert smallest(choice(1, 2)) is not True
    assert isinstance(smallest(choice(1.0, 2.0)), float)
    assert smallest(choice(True, False)) is True


@pytest.mark.whole
@pytest.mark.parametrize("operation", [o for o in OPERATIONS if len(o.formulas) > 1], ids=lambda o: o.name)
@given(data=st.data())
@fewer
def test_forms_of_a_formula_are_equal_over_the_reals(operation: OpInfo, data: st.DataObject) -> None:
    trial = trial_of(data, operation.name)
    trial.large_share = sys.maxsize  # identities of a formula do not know sizes, and 300 bits for each number cost much
    arguments = operation.sample(trial)
    xp = Exact(300)
    lifted = operation.lift(trial, arguments, xp)
    first, *others = [operation.formulas[i](xp, lifted) for i in range(len(operation.formulas))]
    for form in filter(None, others):  # a form may decline
        for a, b in zip(first, form, strict=True):
            assert_equal(xp, a, b)
    if not operation.vjps:
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    g = xp.asarray(rng.standard_normal(first[0].shape))
    vjp, *more = [f(xp, lifted, g) for f in operation.vjps]
    for form in filter(None, more):
        for name in operation.differentiable(arguments):
            assert_equal(xp, vjp[name], form[name])


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if len(o.formulas) > 1], ids=lambda o: o.name)
@given(data=st.data())
@few
def test_the_bound_is_the_widest_of_all_forms(operation: OpInfo, data: st.DataObject) -> None:
    trial = trial_of(data, operation.name)
    arguments = operation.sample_basic(trial)
    found = operation.exact(trial, arguments, use_exact_oracle=False)
    alone = [replace(operation, formulas=(f,)) for f in operation.formulas]
    forms = [one.exact(trial, arguments, use_exact_oracle=False) for one in alone]
    for part, reference in enumerate(found):
        assert (reference.narrow == forms[0][part].bound).all()
        assert (reference.bound == np.max([form[part].bound for form in forms if form], axis=0)).all()


def assert_equal(xp: Exact, a: Any, b: Any) -> None:
    x, y = xp.asarray(a).value, xp.asarray(b).value
    assert x.shape == y.shape
    for p, q in zip(x.ravel(), y.ravel(), strict=True):
        assert p == q or abs(p - q) <= 2.0**-150 * (1 + abs(p))


@pytest.mark.whole
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@pytest.mark.parametrize("dtype", ["fp64", "bf16"])
@given(data=st.data())
@few
def test_draws_have_values_in_the_spec(operation: OpInfo, dtype: str, data: st.DataObject) -> None:
    trial = trial_of(data, operation.name, dtype)
    for draw in (operation.sample, operation.sample_basic):
        for reference in operation.exact(trial, draw(trial), use_exact_oracle=False):
            assert not np.isnan(reference.exact).any()
            assert (reference.bound >= 0).all()


@pytest.mark.whole
@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.batch_slice], ids=lambda o: o.name)
@given(data=st.data())
@few
def test_a_part_alone_has_the_value_of_the_part(operation: OpInfo, data: st.DataObject) -> None:
    trial = trial_of(data, operation.name)
    assert operation.batch_slice is not None
    whole, alone, index = operation.batch_slice(trial)
    exact, part = (operation.exact(trial, a, use_exact_oracle=False)[0] for a in (whole, alone))
    there = exact.exact[index["result"]]
    apart = np.abs(np.where(there == part.exact, 0.0, there) - np.where(there == part.exact, 0.0, part.exact))
    assert (apart <= exact.bound[index["result"]] + part.bound).all()


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.argument_perturbations], ids=lambda o: o.name)
@given(data=st.data())
@few
def test_changes_change_one_thing(operation: OpInfo, data: st.DataObject) -> None:
    assert operation.argument_perturbations is not None
    arguments, changed = operation.argument_perturbations(trial_of(data, operation.name))
    assert changed
    for other in changed.values():
        keys = [key for key in other if key not in arguments or other[key] is not arguments[key]]
        assert len(keys) == 1


@given(data=st.data())
@few
def test_attention_draws_leave_every_query_a_key_and_windows_no_holes(data: st.DataObject) -> None:
    trial = trial_of(data, "attention")
    shape = draw_shape(trial)
    options = draw_options(trial, shape)
    assert every_row_sees(trial, shape, options)
    if "window" in options:
        assert options["is_causal"]
        mask = options.get("mask")
        causal = causal_mask(shape[3], shape[4])
        for rows in (
            []
            if mask is None
            else np.broadcast_to(mask.numpy(), (*shape[:2], *causal.shape)).reshape(-1, *causal.shape)
        ):
            for row, seen in zip(rows, causal, strict=True):
                edges = np.diff(row[seen].astype(int))
                assert np.count_nonzero(edges) <= 1


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.name)
@given(data=st.data())
@few
def test_what_must_be_refused_names_arguments_of_the_call(operation: OpInfo, data: st.DataObject) -> None:
    known = set(inspect.signature(getattr(TARGET.implementation, operation.name)).parameters)
    if operation.name in DRIVERS:  # names of the methods that are called, or of the weights that are given one by one
        known |= set(inspect.signature(DRIVERS[operation.name]).parameters) | {"k_new", "v_new", "q", "k", "v", "index"}
        known |= set(operation.sample_basic(trial_of(data, operation.name)))
    for bad in operation.invalid_calls(trial_of(data, operation.name)):
        assert {*bad.names, *bad.arguments} <= known
        assert bad.what


@pytest.mark.parametrize(("n", "q"), [(80, 0.3), (400, 0.9), (2048, 0.58)])
def test_the_interval_of_chance_holds_all_but_the_stated_rate(n: int, q: float) -> None:
    low, high = interval(n, q)
    log_q, log_p = math.log(q), math.log(1 - q)
    outside = math.fsum(
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_q + (n - k) * log_p)
        for k in range(n + 1)
        if not low <= k / n <= high
    )
    assert 0 < outside < ERROR_RATE
    assert low < q < high


def test_conventions_reach_the_formula() -> None:
    claims = Claims(conventions={"causal.alignment": "top-left"})
    assert ATTENTION.convention_kwargs(claims) == {"alignment": "top-left"}
