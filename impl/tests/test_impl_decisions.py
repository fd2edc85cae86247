"""From scores to decisions: smoothing, temperature, calibration, the masked objective, filters and greedy choice."""

import inspect
import math

import pytest
import torch

import veriformer.impl
from tests.derived_bounds import after_rounding, dtypes, forward_and_backward, gamma, judge, random, working_roundoff
from veriformer.impl import (
    cross_entropy,
    expected_calibration_error,
    greedy,
    masked_lm_loss,
    smooth_labels,
    temperature_scale,
    top_k_filter,
    top_p_filter,
)

SIGNATURES = {
    "smooth_labels": "(target, num_classes, alpha)",
    "temperature_scale": "(logits, temperature)",
    "expected_calibration_error": "(probs, target, *, num_bins=15)",
    "masked_lm_loss": "(logits, labels, *, ignore_index=-100)",
    "top_k_filter": "(logits, k)",
    "top_p_filter": "(logits, p)",
    "greedy": "(logits)",
    "beam_search": "(step, start, *, beam_width, max_length, eos, length_penalty=0.0)",
    "bpe_train": "(texts, num_merges)",
    "bpe_encode": "(text, merges)",
    "unigram_segment": "(text, log_probs)",
}
INF = math.inf


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_are_those_of_the_contract(name):
    function = getattr(veriformer.impl, name)
    bare = [p.replace(annotation=p.empty) for p in inspect.signature(function).parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]
    assert "Raises" in function.__doc__


def test_smoothed_labels_share_alpha_among_all_classes():
    y = smooth_labels(torch.tensor([[2], [0]]), 4, 0.5)
    assert y.tolist() == [[[0.125, 0.125, 0.625, 0.125]], [[0.625, 0.125, 0.125, 0.125]]]
    assert smooth_labels(torch.tensor(1, dtype=torch.int32), 2, 0.0).tolist() == [0.0, 1.0]
    assert smooth_labels(torch.tensor([0]), 1, 1.0).tolist() == [[1.0]]


def test_smoothed_labels_have_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert smooth_labels(torch.tensor([0]), 3, 0.1)[0, 1] == 0.1 / 3
    finally:
        torch.set_default_dtype(torch.float32)


@dtypes
@pytest.mark.parametrize("T", [0.25, 1.0, 3.0])
def test_temperature(T, dtype):
    z, g, u = random(3, 7, dtype=dtype), random(3, 7, dtype=dtype, seed=1), working_roundoff(dtype)
    p, dz = forward_and_backward(lambda z: temperature_scale(z, T), z, g=g)
    x, g = z.double() / T, g.double()
    exact = x.softmax(-1)
    ε = torch.expm1(8 * u * (x - x.amax(-1, keepdim=True)).abs().amax()) + gamma(20, u)
    judge(p, exact, after_rounding(exact, ε * exact, dtype))
    mean = (exact * g).sum(-1, keepdim=True)
    size = exact * (g.abs() + (exact * g.abs()).sum(-1, keepdim=True)) / T
    judge(dz, exact * (g - mean) / T, after_rounding(exact * (g - mean) / T, (4 * ε + gamma(20, u)) * size, dtype))


@pytest.mark.parametrize("T", [1e-300, 1e-50, 1e-38, 1e-6])
def test_a_tiny_temperature_leaves_the_largest_alone(T):
    z = torch.tensor([1.0, 3.0, -INF, -3e38], requires_grad=True)
    p = temperature_scale(z, T)
    assert p.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert torch.autograd.grad(p, z, torch.arange(4.0))[0].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert temperature_scale(torch.tensor([2.0, 1.0, 2.0]), T).tolist() == [0.5, 0.0, 0.5]


def test_a_huge_temperature_makes_equal():
    assert temperature_scale(torch.tensor([1.0, -5.0]), 1e300).tolist() == [0.5, 0.5]
    far = torch.tensor([3e38, -3e38])
    exact = torch.tensor([-6.0]).double().sigmoid()
    judge(temperature_scale(far, 1e38)[1:], exact, exact * gamma(40, working_roundoff(far.dtype)))


@dtypes
def test_calibration_at_the_edges_of_bins(dtype):
    def error(confidences, hits, bins):
        probs = torch.tensor([[c, 0.0] for c in confidences], dtype=dtype)
        return expected_calibration_error(probs, 1 - torch.tensor(hits), num_bins=bins).item()

    assert error([1.0, 1.0], [1, 1], 4) == 0
    assert error([0.0], [1], 4) == 1  # the first bin holds 0
    # 0.5 lies in the lower of two bins with 0.25, and not with 1.0.
    assert error([0.25, 0.5, 1.0, 1.0], [0, 1, 0, 1], 2) == (0.25 + 1) / 4
    assert error([0.5, 0.75], [1, 0], 2) == (0.5 + 0.75) / 2
    assert error([0.25, 0.75], [0, 1], 1) == 0


def test_the_lower_of_two_equal_classes_is_chosen():
    probs = torch.tensor([[0.5, 0.5], [0.5, 0.5]])
    assert expected_calibration_error(probs, torch.tensor([0, 1])) == 0
    assert expected_calibration_error(probs, torch.tensor([0, 0])) == 0.5


@dtypes
def test_masked_positions_alone_are_scored(dtype):
    z, labels = random(2, 3, 5, dtype=dtype), torch.tensor([[1, -100, 4], [-100, -100, 0]])
    assert torch.equal(masked_lm_loss(z, labels), cross_entropy(z, labels))
    assert masked_lm_loss(z, torch.full((2, 3), 7), ignore_index=7) == 0


@dtypes
def test_exactly_k_survive_with_ties_to_the_lower_index(dtype):
    z = torch.tensor([[1, 3, 3, 0, 3], [2, 2, 2, 2, 2], [-INF, 5, -INF, 4, 6]], dtype=dtype)
    assert top_k_filter(z, 2).tolist() == [
        [-INF, 3, 3, -INF, -INF],
        [2, 2, -INF, -INF, -INF],
        [-INF, 5, -INF, -INF, 6],
    ]
    assert torch.equal(top_k_filter(z, 5), z)
    assert torch.equal(top_k_filter(z, 9), z)


@dtypes
def test_the_nucleus_reaches_p(dtype):
    z = torch.tensor([0.125, 0.5, 0.125, 0.25]).log().to(dtype)
    kept = {p: (top_p_filter(z, p) > -INF).tolist() for p in (0.0, 0.3, 0.6, 0.8, 0.9, 1.0)}
    assert kept[0.0] == kept[0.3] == [False, True, False, False]
    assert kept[0.6] == [False, True, False, True]
    assert kept[0.8] == [True, True, False, True]
    assert kept[0.9] == kept[1.0] == [True] * 4
    assert (top_p_filter(torch.zeros(40, dtype=dtype), 1e-30) > -INF).tolist() == [True] + [False] * 39


def test_what_is_kept_is_untouched_and_carries_the_gradient():
    z = random(3, 6).requires_grad_()
    for filtered in (top_k_filter(z, 2), top_p_filter(z, 0.7)):
        kept = filtered > -INF
        assert torch.equal(filtered[kept], z[kept])
        assert torch.equal(torch.autograd.grad(filtered[kept].sum(), z)[0], kept.double())


def test_greedy_takes_the_first_of_equals():
    assert greedy(torch.tensor([[1.0, 7.0, 7.0], [-0.0, 0.0, -1.0]])).tolist() == [1, 0]


BAD = [
    (smooth_labels, (torch.tensor([3]), 3, 0.1), "target"),
    (smooth_labels, (torch.tensor([0.0]), 3, 0.1), "target"),
    (smooth_labels, (torch.tensor([0]), 0, 0.1), "num_classes"),
    (smooth_labels, (torch.tensor([0]), 3, 1.5), "alpha"),
    (temperature_scale, (torch.zeros(2), 0.0), "temperature"),
    (temperature_scale, (torch.zeros(2), math.nan), "temperature"),
    (temperature_scale, (torch.zeros(0), 1.0), "logits"),
    (expected_calibration_error, (torch.zeros(0, 2), torch.zeros(0).long()), "target"),
    (expected_calibration_error, (torch.full((1, 2), 1.5), torch.zeros(1).long()), "probs"),
    (masked_lm_loss, (torch.zeros(1, 2), torch.tensor([2])), "labels"),
    (masked_lm_loss, (torch.zeros(1, 2), torch.zeros(1, 2)), "labels"),
    (top_k_filter, (torch.zeros(3), 0), "k"),
    (top_k_filter, (torch.zeros(3), True), "k"),
    (top_p_filter, (torch.zeros(3), 1.5), "p"),
    (greedy, (torch.zeros(2, 0),), "logits"),
]


@pytest.mark.parametrize(("function", "arguments", "name"), BAD)
def test_bad_input_is_refused_by_name(function, arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}: expected"):
        function(*arguments)
