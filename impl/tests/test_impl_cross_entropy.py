"""Cross-entropy and perplexity: values, gradients, targets of both kinds, and what is ignored."""

import math

import pytest
import torch

from tests.derived_bounds import (
    DTYPES,
    after_rounding,
    dtypes,
    forward_and_backward,
    gamma,
    judge,
    random,
    working_roundoff,
)
from veriformer.impl import cross_entropy, perplexity

V = 7
CLASSES = torch.tensor([[3, 0, 6, -100, 2], [1, -100, 6, 5, 5]])
PROBABILITIES = random(2, 5, V).softmax(-1) * torch.tensor([1.0, 0.5, 0.9, 0.0, 1.0])[:, None]
PROBABILITIES[0, 0] = torch.eye(V)[4]
TARGETS = {"classes": CLASSES, "probabilities": PROBABILITIES}
LOGITS = {"ordinary": random(2, 5, V), "large": random(2, 5, V) * 30 + 1e4, "peaked": random(2, 5, V) * 100}

logits_of_all_kinds = pytest.mark.parametrize("z", LOGITS.values(), ids=LOGITS)


def distribution(target, alpha, dtype):
    """Return what the logits are scored against, `[..., V]`, and which rows count."""
    if target.is_floating_point():
        counted = torch.ones(target.shape[:-1], dtype=torch.bool)
        t = target.to(dtype).double()
    else:
        counted = target != -100
        t = torch.nn.functional.one_hot(target.clamp(min=0), V).double()
    return ((1 - alpha) * t + alpha / V).masked_fill(~counted[..., None], 0), counted


def oracle(z, q, u):
    """Return the losses, the gradients of each, and bounds on both."""
    z = z.double()
    shifted = z - z.amax(-1, keepdim=True)
    log_p = shifted.log_softmax(-1)
    p, log_sum = log_p.exp(), (shifted - log_p)[..., :1].abs()
    in_sum = (p * torch.expm1(u * shifted.abs())).sum(-1, keepdim=True) + gamma(V + 8, u)
    δ = u * shifted.abs() + in_sum + 4 * u * log_sum + 2 * u * log_p.abs()
    W = q.sum(-1, keepdim=True)
    loss, size = -(q * log_p).sum(-1), (q * log_p.abs()).sum(-1)
    gradient = p * W - q
    B = p * W * (torch.expm1(δ) + gamma(V + 8, u)) + gamma(V + 8, u) * q
    return loss, (q * δ).sum(-1) + gamma(V + 8, u) * size, gradient, B


@dtypes
@logits_of_all_kinds
@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_values_and_gradients(z, target, alpha, reduction, dtype):
    z, u = z.to(dtype), working_roundoff(dtype)
    q, counted = distribution(target, alpha, dtype)
    loss, B_loss, dz, B_dz = oracle(z, q, u)
    g = random(*loss.shape, dtype=dtype) if reduction == "none" else random(dtype=dtype, seed=9)
    weight = g.double() / (counted.sum() if reduction == "mean" else 1)
    if reduction != "none":
        loss, B_loss = loss.sum(), B_loss.sum() + gamma(12, u) * loss.abs().sum()
    if reduction == "mean":
        loss, B_loss = (x / counted.sum() for x in (loss, B_loss))
    dz, B_dz = (x * weight.expand(2, 5)[..., None] for x in (dz, B_dz))

    def function(z):
        moved = target.to(dtype) if target.is_floating_point() else target
        return cross_entropy(z, moved, label_smoothing=alpha, reduction=reduction)

    got, got_dz = forward_and_backward(function, z, g=g)
    assert got.dtype == got_dz.dtype == dtype
    judge(got, loss, after_rounding(loss, B_loss, dtype))
    judge(got_dz, dz, after_rounding(dz, B_dz.abs() + gamma(3, u) * dz.abs(), dtype))


@dtypes
@logits_of_all_kinds
def test_perplexity(z, dtype):
    z, u = (z / 20).to(dtype), working_roundoff(dtype)
    q, counted = distribution(CLASSES, 0.0, dtype)
    n = counted.sum()
    loss, B_loss, dz, B_dz = oracle(z, q, u)
    ppl = (loss.sum() / n).exp()
    ε = torch.expm1(B_loss.sum() / n + gamma(16, u) * loss.sum() / n) + gamma(4, u)
    got, got_dz = forward_and_backward(lambda z: perplexity(z, CLASSES), z, g=torch.ones((), dtype=dtype))
    assert got.shape == ()
    assert got.dtype == dtype
    judge(got, ppl, after_rounding(ppl, ε * ppl, dtype))
    exact = ppl * dz / n
    judge(got_dz, exact, after_rounding(exact, (1 + ε) * ppl * B_dz / n + (ε + gamma(4, u)) * exact.abs(), dtype))


@dtypes
def test_equal_logits_are_as_perplexing_as_their_number(dtype):
    z, u = torch.full((2, 5, V), 2.5, dtype=dtype), working_roundoff(dtype)
    exact = torch.tensor(float(V)).double()
    judge(perplexity(z, CLASSES), exact, after_rounding(exact, exact * torch.expm1(gamma(16, u) * exact.log()), dtype))


@dtypes
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_with_nothing_to_count_loss_and_gradient_are_zero(reduction, alpha, dtype):
    for target in (torch.full((2, 5), -100), torch.zeros(2, 0, dtype=torch.int64)):
        z = random(*target.shape, V, dtype=dtype)
        options = {"reduction": reduction, "label_smoothing": alpha}
        z.requires_grad_()
        loss = cross_entropy(z, target, **options)
        assert loss.shape == (target.shape if reduction == "none" else ())
        assert not loss.any()
        loss.sum().backward()
        assert torch.equal(z.grad, torch.zeros_like(z))
    assert not cross_entropy(torch.zeros(0, V), torch.zeros(0, V), reduction=reduction).any()


@dtypes
def test_perplexity_of_nothing_is_one(dtype):
    got, dz = forward_and_backward(
        lambda z: perplexity(z, torch.full((2,), 4), ignore_index=4),
        random(2, V, dtype=dtype),
        g=torch.ones((), dtype=dtype),
    )
    assert torch.equal(got, torch.ones((), dtype=dtype))
    assert torch.equal(dz, torch.zeros_like(dz))


@dtypes
@pytest.mark.parametrize("ignore_index", [-100, -1, 0, 5, 10**9])
def test_what_is_ignored_plays_no_part(ignore_index, dtype):
    z = random(6, V, dtype=dtype)
    target = torch.tensor([1, ignore_index, 3, ignore_index, 2, 6])
    kept = target != ignore_index
    got, dz = forward_and_backward(
        lambda z: cross_entropy(z, target, ignore_index=ignore_index, label_smoothing=0.1),
        z,
        g=torch.ones((), dtype=dtype),
    )
    want, want_dz = forward_and_backward(
        lambda z: cross_entropy(z, target[kept], label_smoothing=0.1), z[kept], g=torch.ones((), dtype=dtype)
    )
    assert torch.equal(got, want)
    assert torch.equal(dz[kept], want_dz)
    assert not dz[~kept].any()
    assert not cross_entropy(z, target, ignore_index=ignore_index, reduction="none")[~kept].any()


def test_an_ignored_row_may_hold_anything():
    z = random(3, V)
    z[1] = torch.nan
    loss, dz = forward_and_backward(
        lambda z: cross_entropy(z, torch.tensor([1, -100, 2])), z, g=torch.ones(()).double()
    )
    assert loss.isfinite()
    assert dz.isfinite().all()


@dtypes
@pytest.mark.parametrize(
    "target", [torch.tensor([0, 2]), torch.tensor([[0.5, 0, 0.5], [0, 0, 1.0]])], ids=["classes", "probabilities"]
)
def test_impossible_classes_that_never_happen_cost_nothing(target, dtype):
    z = torch.tensor([[0.5, -torch.inf, 1.0], [2.0, -torch.inf, 0.5]], dtype=dtype)
    target = target.to(dtype) if target.is_floating_point() else target
    loss, dz = forward_and_backward(lambda z: cross_entropy(z, target), z, g=torch.ones((), dtype=dtype))
    want, want_dz = forward_and_backward(
        lambda z: cross_entropy(z, target // 2 if target.dtype == torch.int64 else target[:, [0, 2]]),
        z[:, [0, 2]],
        g=torch.ones((), dtype=dtype),
    )
    assert torch.equal(loss, want)
    assert torch.equal(dz[:, [0, 2]], want_dz)
    assert not dz[:, 1].any()


def test_impossible_classes_that_happen_cost_everything():
    z = torch.tensor([[0.5, -torch.inf, 1.0]])
    assert cross_entropy(z, torch.tensor([1])) == torch.inf
    assert cross_entropy(z, torch.tensor([0]), label_smoothing=0.1) == torch.inf
    assert cross_entropy(z, torch.tensor([1]), label_smoothing=1.0) == torch.inf
    assert cross_entropy(z, torch.tensor([[0.5, 0.5, 0.0]])) == torch.inf
    assert perplexity(z, torch.tensor([1])) == torch.inf


@dtypes
def test_extreme_logits(dtype):
    largest = torch.finfo(dtype).max
    z = torch.tensor([[largest, -largest, 0.0]], dtype=dtype)
    loss, dz = forward_and_backward(lambda z: cross_entropy(z, torch.tensor([0])), z, g=torch.ones((), dtype=dtype))
    assert loss == 0
    assert not dz.any()


def test_sums_of_halves_are_formed_in_float32():
    z = torch.zeros(5000, 2, dtype=torch.float16)
    target = torch.zeros(5000, dtype=torch.int64)
    exact = torch.tensor(5000 * math.log(2)).double()
    judge(
        cross_entropy(z, target, reduction="sum"),
        exact,
        after_rounding(exact, gamma(5000, 2**-24) * exact, torch.float16),
    )
    mean = exact / 5000
    judge(cross_entropy(z, target), mean, after_rounding(mean, gamma(5000, 2**-24) * mean, torch.float16))


def test_a_single_row():
    z = random(V)
    assert torch.equal(cross_entropy(z, torch.tensor(3)), cross_entropy(z[None], torch.tensor([3])))
    assert torch.equal(cross_entropy(z, PROBABILITIES[0, 1]), cross_entropy(z[None], PROBABILITIES[0, 1][None]))


def test_targets_have_no_gradient_and_may_have_another_dtype():
    z, t = random(2, 5, V, dtype=torch.float32).requires_grad_(), PROBABILITIES.clone().requires_grad_()
    loss = cross_entropy(z, t)
    assert loss.dtype == torch.float32
    loss.backward()
    assert t.grad is None
    assert z.grad.any()


def test_arguments_are_left_alone_and_layout_changes_nothing():
    z, target = random(2, 5, V), CLASSES.clone()
    want = cross_entropy(z, target, label_smoothing=0.1, reduction="none")
    for layout in (z.mT.contiguous().mT, torch.stack([z, z * torch.nan], -1)[..., 0]):
        got = cross_entropy(layout, target.mT.contiguous().mT, label_smoothing=0.1, reduction="none")
        judge(got, want, after_rounding(want, gamma(64, 2.0**-53) * want, torch.float64))
    assert z._version == target._version == 0
    assert torch.equal(
        cross_entropy(z[:, :1].expand(2, 5, V), target)[None], cross_entropy(z[:, :1].repeat(1, 5, 1), target)[None]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_shapes_without_numbers(dtype):
    z = torch.empty(2, 5, V, dtype=dtype, device="meta", requires_grad=True)
    for target in (CLASSES, PROBABILITIES):
        loss = cross_entropy(z, target.to("meta"), label_smoothing=0.1)
        assert loss.dtype == dtype
        assert torch.autograd.grad(loss, z)[0].shape == z.shape
    assert perplexity(z, CLASSES.to("meta")).shape == ()


Z = torch.zeros(2, 5, V)
REFUSALS = [
    ((None, CLASSES), {}, TypeError, "logits"),
    ((Z.long(), CLASSES), {}, TypeError, "logits"),
    ((Z[..., :0], CLASSES), {}, ValueError, "logits"),
    ((torch.tensor(1.0), CLASSES), {}, ValueError, "logits"),
    ((Z, None), {}, TypeError, "target"),
    ((Z, CLASSES.int()), {}, TypeError, "target"),
    ((Z, CLASSES.bool()), {}, TypeError, "target"),
    ((Z, CLASSES[:1]), {}, ValueError, "target"),
    ((Z, CLASSES[..., None]), {}, ValueError, "target"),
    ((Z, CLASSES.clamp(min=-1)), {}, ValueError, "target"),
    ((Z, torch.where(CLASSES == 6, V, CLASSES)), {}, ValueError, "target"),
    ((Z, CLASSES), {"ignore_index": 3}, ValueError, "target"),
    ((Z, CLASSES), {"ignore_index": 0.5}, TypeError, "ignore_index"),
    ((Z, CLASSES), {"ignore_index": True}, TypeError, "ignore_index"),
]
ONLY_CROSS_ENTROPY = [
    ((Z, PROBABILITIES[:1]), {}, ValueError, "target"),
    ((Z, PROBABILITIES - 1), {}, ValueError, "target"),
    ((Z, PROBABILITIES + 1), {}, ValueError, "target"),
    ((Z, PROBABILITIES * torch.nan), {}, ValueError, "target"),
    ((Z, CLASSES), {"label_smoothing": -0.1}, ValueError, "label_smoothing"),
    ((Z, CLASSES), {"label_smoothing": 1.1}, ValueError, "label_smoothing"),
    ((Z, CLASSES), {"label_smoothing": math.nan}, ValueError, "label_smoothing"),
    ((Z, CLASSES), {"label_smoothing": "0.1"}, TypeError, "label_smoothing"),
    ((Z, CLASSES), {"reduction": "average"}, ValueError, "reduction"),
    ((Z, CLASSES), {"reduction": None}, ValueError, "reduction"),
]


@pytest.mark.parametrize(("arguments", "options", "error", "name"), REFUSALS + ONLY_CROSS_ENTROPY)
def test_cross_entropy_refuses(arguments, options, error, name):
    with pytest.raises(error, match=f"{name}: expected"):
        cross_entropy(*arguments, **options)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "name"), [*REFUSALS, ((Z, PROBABILITIES), {}, TypeError, "target")]
)
def test_perplexity_refuses(arguments, options, error, name):
    with pytest.raises(error, match=f"{name}: expected"):
        perplexity(*arguments, **options)
