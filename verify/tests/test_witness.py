"""Ordinary calls, witnesses of practice, and exceptions: what a finding may say, and what narrows the domain."""

from __future__ import annotations

import math
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from veriformer import impl
from veriformer.spec.layers.rms_norm import rms_norm as formula
from veriformer.spec.requirement import Weight
from veriformer.verify import check
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.contract.features import present
from veriformer.verify.contract.ordinary import is_ordinary
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.findings import witness
from veriformer.verify.findings.compositions import (
    BY_CLAMP,
    BY_NORMALIZE,
    BY_POWERS,
    BY_ROOTS,
    BY_SMALLEST,
    BY_SORT,
    IN_PLACE,
    MASKED_BY_THE_LOWEST,
    OFF,
    SOFTMAX_AND_PRODUCTS,
    TIMES_A_MASK,
    TOP_LEFT,
)
from veriformer.verify.findings.inquiry import Inquiry
from veriformer.verify.findings.precision import COARSER
from veriformer.verify.findings.survey import survey
from veriformer.verify.findings.witness import STEPWISE
from veriformer.verify.judging.arithmetic import TorchArithmetic
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.results import Results, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.targets.loading import wrap

X = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])


def ordinary(operation: str = "rms_norm", **arguments: Any) -> bool:
    return is_ordinary(operation, present(operation, arguments), arguments)


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        (True, {"x": X}),
        (True, {"x": X, "weight": torch.ones(3), "eps": 1e-5}),
        (False, {"x": X, "eps": 0.0}),
        (False, {"x": X, "eps": np.float64(1e-5)}),
        (False, {"x": 1e3 * X}),
        (False, {"x": X / 0.0}),
        (False, {"x": X[:0]}),
        (False, {"x": X.reshape(1, 1, 1, 2, 3)}),
    ],
)
def test_a_call_is_ordinary_by_ranks_sizes_values_and_types(expected: bool, arguments: dict[str, Any]) -> None:
    assert ordinary(**arguments) is expected


def test_equal_scores_are_degenerate_only_where_one_is_chosen() -> None:
    tied = torch.tensor([[1.0, 1.0, 2.0]])
    assert ordinary("softmax", z=tied)
    assert not ordinary("greedy", logits=tied)


def test_lists_of_tensors_are_looked_into() -> None:
    assert ordinary("clip_grad_norm", grads=[X], max_norm=1.0)
    assert not ordinary("clip_grad_norm", grads=[X, 1e30 * X], max_norm=1.0)


def test_a_formula_over_tensors_is_rounded_and_differentiated_step_by_step() -> None:
    xp = TorchArithmetic(torch.float16)
    large = torch.tensor([[600.0, 1.0]], dtype=torch.float16)
    assert formula(xp, xp.asarray(large)).value[0, 0] == 0  # 1 over the root of an infinite sum of squares
    x = X.double().requires_grad_()
    y = formula(TorchArithmetic(torch.float64), TorchArithmetic(torch.float64).asarray(x)).tensor
    assert torch.autograd.gradcheck(lambda z: formula(*_in_float64(z)).tensor, x)
    assert y.dtype is torch.float64


def _in_float64(z: torch.Tensor) -> tuple[TorchArithmetic, Any]:
    xp = TorchArithmetic(torch.float64)
    return xp, xp.asarray(z)


def in_its_own_dtype(x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return y if weight is None else weight * y


def squared_twice_over(x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
    """Loses far smaller numbers than a square needs."""
    y = x * 64 * torch.rsqrt((64 * x).pow(2).mean(-1, keepdim=True) + 64 * 64 * eps)
    return y if weight is None else weight * y


def by_one_pass(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    mean = x.mean(-1, keepdim=True)
    y = (x - mean) * torch.rsqrt((x * x).mean(-1, keepdim=True) - mean * mean + eps)
    return (y if weight is None else y * weight) + (0 if bias is None else bias)


def composed_attention(q: Any, k: Any, v: Any, *, is_causal: bool = False) -> Any:
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if is_causal:
        seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(~seen, -torch.inf)
    return scores.softmax(-1) @ v


def gelu_by_powers(x: Any, *, approximate: str = "tanh") -> Any:
    if approximate == "none":
        return torch.nn.functional.gelu(x)
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3))))


def never_colder(logits: Any, temperature: float) -> Any:
    return torch.softmax(logits / max(temperature, 1e-3), -1)


def short_rows(z: Any, dim: int = -1) -> Any:
    if z.shape[dim] > 1024:
        raise IndexError("a row is too long")
    return torch.softmax(z, dim)


def no_sevens(z: Any, dim: int = -1) -> Any:
    if z.numel() % 7 == 0:
        raise ArithmeticError("no sevens")
    return torch.softmax(z, dim)


TIES_LEFT_OPEN = {"choice.ties": "unspecified"}


def judged(operation: str, function: Any, *only: str, dtype: str = "fp32", claims: Any = None) -> Results:
    target = SimpleNamespace(**{operation: function}, CLAIMS={"conventions": claims or {}})
    return check(target, only=[f"{operation}.{one}" for one in only], profile="quick", dtype=[dtype])


@cache
def results(name: str, operation: str, *only: str, dtype: str = "fp16") -> Results:
    return judged(operation, globals()[name], *only, dtype=dtype)


def told(found: Results) -> list[Finding]:
    return [one for one in found.findings if one.weight is not Weight.UNGUARDED]


@pytest.mark.whole
def test_what_the_formula_loses_likewise_is_a_weakness() -> None:
    found = results("in_its_own_dtype", "rms_norm", "range")
    (one,) = told(found)
    assert (one.weight, one.witness) == (Weight.WEAKNESS, STEPWISE)
    assert one.what.endswith(f", as {STEPWISE} does")
    assert found.results[-1].status is Status.ADVICE
    assert found.exit_status == 0


def test_a_witness_is_asked_however_little_time_is_left() -> None:
    target = wrap(SimpleNamespace(rms_norm=in_its_own_dtype))
    (of_range,) = [one for one in checks() if one.requirement.slug == "rms_norm.range"]
    failed = run_check(CheckRun(of_range, "fp16"), target, PROFILES["quick"], "slug", {})
    assert failed.status is Status.FAIL
    (one,) = Inquiry("rms_norm", [failed], target, "slug", until=0.0).findings()
    assert (one.weight, one.witness) == (Weight.WEAKNESS, STEPWISE)


@pytest.mark.whole
def test_what_no_witness_loses_stays_fragile() -> None:
    found = results("squared_twice_over", "rms_norm", "near_eps", "equation", "range")
    assert any(one.weight is Weight.FRAGILE and one.witness is None for one in told(found))
    assert found.exit_status == 1


def by_sorted_logs(logits: Any, p: float) -> Any:
    ordered, index = torch.sort(logits.log_softmax(-1), -1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    before[..., 0] = -1.0
    kept = logits.gather(-1, index).masked_fill(before >= p, -torch.inf)
    return torch.full_like(logits, -torch.inf).scatter(-1, index, kept)


@pytest.mark.whole
def test_tokens_sorted_by_rounded_logarithms_are_weighed_by_practice() -> None:
    row = CheckRun(next(one for one in checks() if one.requirement.slug == "top_p_filter.equation"), "bf16")
    target = wrap(SimpleNamespace(top_p_filter=by_sorted_logs))
    failed = [one for one in survey(row, target, "slug", examples=60, seconds=20.0) if one.failed]
    witnesses = list(witness._witnesses("top_p_filter", target, half=True))
    assert failed
    assert {witness._witness_of(one, witnesses) for one in failed} == {BY_SORT}


def masked_by_a_product(logits: Any, target: Any, *, ignore_index: int = -100, reduction: str = "mean") -> Any:
    kept = target != ignore_index
    losses = -logits.log_softmax(-1).gather(-1, target.where(kept, 0).long()[..., None])[..., 0] * kept
    return losses if reduction == "none" else losses.sum() / (kept.sum() if reduction == "mean" else 1)


def rooted_attention(q: Any, k: Any, v: Any, *, scale: float | None = None) -> Any:
    root = np.sqrt(k.shape[-1] ** -0.5 if scale is None else scale).item()
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    return ((q * root) @ (k.mT * root)).softmax(-1) @ v


def aligned_top_left(q: Any, k: Any, v: Any, *, is_causal: bool = False) -> Any:
    """Attention by the operator alone where there are more queries than keys, which it aligns at the first of both."""
    mask = impl.causal_mask(q.shape[-2], k.shape[-2]) if is_causal and q.shape[-2] <= k.shape[-2] else None
    own = is_causal and mask is None
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=own, enable_gqa=True)


@pytest.mark.whole
def test_more_queries_than_keys_are_aligned_as_the_operator_has_it() -> None:
    """The mean of all values, where the lowest number masks, is often about as far off."""
    row = CheckRun(next(one for one in checks() if one.requirement.slug == "attention.empty_row"), "fp32")
    target = wrap(SimpleNamespace(attention=aligned_top_left))
    found = survey(row, target, "slug", examples=60, seconds=20.0)
    witnesses = list(witness._witnesses("attention", target, half=False))
    assert {witness._witness_of(one, witnesses) for one in found if one.failed} == {MASKED_BY_THE_LOWEST, TOP_LEFT}


@pytest.mark.whole
def test_an_exception_for_calls_never_answered_narrows_the_domain() -> None:
    found = results("short_rows", "softmax", "equation", "long", dtype="fp32")
    assert {row.status for row in found.results} <= {Status.PASS, Status.NOT_PROVIDED}
    assert any(row.refused for row in found.results)  # the probe met too few of them
    assert "IndexError: a row is too long" in found.domain["softmax"].refused.values()
    assert not told(found)


@pytest.mark.whole
def test_an_exception_for_ordinary_calls_is_wrong() -> None:
    found = results("no_sevens", "softmax", "equation", dtype="fp32")
    assert [one.weight for one in told(found)] == [Weight.WRONG]
    assert "raises ArithmeticError" in told(found)[0].what


def alibi_slopes(num_heads: int) -> Any:
    return impl.alibi_slopes(num_heads).float().to(torch.get_default_dtype())


def lowest_masked(q: Any, k: Any, v: Any, *, is_causal: bool = False) -> Any:
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if is_causal:
        seen = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ v


def test_float64_that_is_computed_in_float32_is_imprecise() -> None:
    found = results("alibi_slopes", "alibi_slopes", "equation", dtype="fp64")
    (one,) = told(found)
    assert (one.weight, one.what) == (Weight.IMPRECISE, f"alibi_slopes: {COARSER}")
    assert found.exit_status in (0, 3)


def wrong_or_refused(z: Any, dim: int = -1) -> Any:
    if z.numel() < 8:
        raise ArithmeticError("too few")
    return 2 * torch.softmax(z, dim)


@pytest.mark.whole
def test_calls_that_raise_while_another_is_made_smaller_are_not_counted() -> None:
    found = results("wrong_or_refused", "softmax", "equation", "shift", dtype="fp32")
    assert all(row.examples >= 1 for row in found.results if row.status is Status.FAIL)
    assert found.exit_status == 1


def _clipped(grads: Any, max_norm: float, *, times: float) -> Any:
    norm = torch.stack([(times * g * (times * g)).sum() for g in grads]).sum().sqrt() / times
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    return [g * factor for g in grads], norm


def filling_top_k(logits: Any, k: int) -> Any:
    values, places = torch.topk(logits, min(k, logits.shape[-1]))
    return logits.fill_(-torch.inf).scatter_(-1, places, values)


def filling_softmax(z: Any, dim: int = -1) -> Any:
    return z.copy_(torch.softmax(z, dim))


@pytest.mark.whole
def test_a_softmax_that_fills_its_scores_is_like_nothing_published() -> None:
    assert all(one.witness is None for one in told(results("filling_softmax", "softmax", "purity", dtype="fp32")))
    assert results("filling_softmax", "softmax", "purity", dtype="fp32").exit_status == 1


def normalized(x: Any, weight: Any = None) -> Any:
    y = F.normalize(x, dim=-1)
    return (y if weight is None else y * weight) * x.shape[-1] ** 0.5


def test_in_a_half_format_most_rows_of_a_cause_tell_for_all() -> None:
    formats = {"a": "fp16", "b": "fp16", "c": "fp32", "d": "fp32"}
    found = witness._with_the_most({"a": "step by step", "b": None, "c": "step by step", "d": None}, formats)
    assert found == {"a": "step by step", "b": "step by step", "c": "step by step", "d": None}
    assert witness._with_the_most({"a": None, "b": None}, formats) == {"a": None, "b": None}


def table(num_positions: int, d_model: int, *, swapped: bool = False) -> Any:
    angles = torch.arange(num_positions)[:, None] * torch.exp(torch.arange(0, d_model, 2) * (-math.log(1e4) / d_model))
    pairs = angles.cos(), angles.sin()
    return torch.stack(pairs if swapped else pairs[::-1], -1).flatten(-2)


def nucleus(logits: Any, p: float) -> Any:
    if p <= 0:
        return logits.clone()
    ordered, places = logits.sort(descending=True)
    mass = ordered.softmax(-1)
    kept = ordered.masked_fill(mass.cumsum(-1) - mass > p, -torch.inf)
    return torch.empty_like(logits).scatter(-1, places, kept)


@pytest.mark.whole
def test_a_nucleus_that_is_off_at_a_p_of_0_is_as_published() -> None:
    found = told(judged("top_p_filter", nucleus, "*", claims=TIES_LEFT_OPEN))
    assert OFF in {one.witness for one in found}
    assert {one.weight for one in found} == {Weight.WEAKNESS}


def emptied(logits: torch.Tensor, p: float) -> torch.Tensor:
    """Keep nothing at p = 0, where the published filter keeps everything."""
    return torch.full_like(logits, -torch.inf) if p == 0 else nucleus(logits, p)


@pytest.mark.whole
def test_a_filter_that_drops_what_another_one_keeps_fails_otherwise() -> None:
    found = told(judged("top_p_filter", emptied, "*", claims=TIES_LEFT_OPEN))
    assert [(one.weight, one.when) for one in found if one.weight is not Weight.WEAKNESS] == [
        (Weight.FRAGILE, "with a p of 0")
    ]


def clamped(grads: Any, max_norm: float, *, most: float = 1.0) -> Any:
    norm = torch.stack([torch.linalg.vector_norm(g) for g in grads]).norm()
    factor = max_norm / norm.clamp(min=max_norm) * most
    return [g * factor for g in grads], norm


WEAKNESSES = [
    ("gelu", gelu_by_powers, "limits", "fp16", BY_POWERS),
    ("temperature_scale", never_colder, "units", "fp32", BY_SMALLEST),
    ("attention", composed_attention, "hidden_poison", "fp32", "torch.nn.functional.scaled_dot_product_attention"),
    ("attention", composed_attention, "empty_row", "fp32", SOFTMAX_AND_PRODUCTS),
    ("attention", lowest_masked, "empty_row", "fp32", MASKED_BY_THE_LOWEST),
    ("attention", rooted_attention, "scale", "fp32", BY_ROOTS),
    ("cross_entropy", masked_by_a_product, "ignored", "fp32", TIMES_A_MASK),
    ("rms_norm", normalized, "affine", "fp16", BY_NORMALIZE),
    ("top_k_filter", filling_top_k, "purity", "fp32", IN_PLACE),
    ("sinusoidal_encoding", table, "equation", "fp16", STEPWISE),
    ("clip_grad_norm", clamped, "identity", "fp32", BY_CLAMP),
]


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:invalid value encountered in sqrt")
@pytest.mark.parametrize(("operation", "function", "law", "dtype", "name"), WEAKNESSES)
def test_what_practice_loses_likewise_is_a_weakness(
    operation: str, function: Any, law: str, dtype: str, name: str
) -> None:
    found = judged(operation, function, law, dtype=dtype, claims=TIES_LEFT_OPEN)
    assert {(one.weight, one.witness) for one in told(found)} == {(Weight.WEAKNESS, name)}
    assert found.exit_status != 1


@pytest.mark.whole
@pytest.mark.parametrize(
    ("operation", "function", "law", "dtype", "weight"),
    [
        ("layer_norm", by_one_pass, "conditioning", "fp32", Weight.FRAGILE),  # cancellation of another order
        ("sinusoidal_encoding", partial(table, swapped=True), "equation", "fp16", Weight.WRONG),
        ("clip_grad_norm", partial(clamped, most=0.999), "identity", "fp32", Weight.WRONG),
    ],
)
def test_what_no_witness_loses_is_no_weakness(
    operation: str, function: Any, law: str, dtype: str, weight: Weight
) -> None:
    found = told(judged(operation, function, law, dtype=dtype))
    assert {(one.weight, one.witness) for one in found} == {(weight, None)}


@pytest.mark.whole
@pytest.mark.parametrize(("times", "status"), [(1.0, 0), (64.0, 1)])
def test_squares_that_overflow_in_half_are_shared_by_the_root_of_their_sum(times: float, status: int) -> None:
    claims = {"clip_grad_norm.denominator": "norm+1e-6"}
    clipped = partial(_clipped, times=times)
    assert judged("clip_grad_norm", clipped, "direction", "range", dtype="fp16", claims=claims).exit_status == status
