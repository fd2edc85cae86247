"""Gradients beyond those that `verify` asks for: through clipping, of what has none, and second ones."""

import pytest
import torch

from tests.attention_calls import ATTENTIONS, backends, tensors
from tests.derived_bounds import U, after_rounding, gamma, judge, random
from veriformer.impl import clip_grad_norm, cross_entropy, mse_loss, rms_norm


@pytest.mark.parametrize("max_norm", [1.0, 100.0])
def test_gradients_flow_through_clipping(max_norm):
    g, h = random(4).requires_grad_(), random(4, seed=1)
    (clipped,), norm = clip_grad_norm([g], max_norm)
    (got,) = torch.autograd.grad((clipped * h).sum() + 2 * norm, g)
    x = g.detach()
    r = x.norm()
    factor = min(1, max_norm / float(r))
    exact = 2 * x / r + (h if factor == 1 else factor * (h - x * (x * h).sum() / r**2))
    judge(
        got,
        exact,
        after_rounding(exact, gamma(64, U[torch.float64]) * (2 + h.abs() + 2 * (x * h).abs().sum()), torch.float64),
    )
    zero = torch.zeros(3).requires_grad_()
    (clipped,), norm = clip_grad_norm([zero], max_norm)
    assert torch.autograd.grad(clipped.sum() + norm, zero)[0].isfinite().all()


def test_targets_have_no_gradient():
    z, t = random(2, 5, dtype=torch.float32).requires_grad_(), random(2, 5).softmax(-1).requires_grad_()
    cross_entropy(z, t).backward()
    mse_loss(z, t.float()).backward()
    assert z.grad.any()
    assert t.grad is None


def test_a_second_derivative_is_refused_rather_than_wrong():
    x = random(2, 11).requires_grad_()
    dx = torch.autograd.grad(rms_norm(x).square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dx.sum().backward()


def test_a_mask_that_changes_before_the_backward_pass_is_noticed():
    q, k, v, g = tensors()
    mask = torch.ones(13, 19, dtype=torch.bool)
    o = ATTENTIONS["tiled"](q.requires_grad_(), k, v, mask=mask)
    mask[:, 5] = False
    with pytest.raises(RuntimeError, match="modified"):
        o.backward(g)


@backends
@pytest.mark.parametrize("own", [False, True], ids=["global", "own"])
def test_backward_leaves_the_generators_where_forward_left_them(attention, own):
    q, k, v, g = tensors()
    generator = torch.Generator().manual_seed(5) if own else None
    o = attention(q.requires_grad_(), k, v, dropout_p=0.5, training=True, generator=generator)
    generators = [torch.default_generator] + [generator] * own
    states = [each.get_state() for each in generators]
    o.backward(g)
    assert all(torch.equal(each.get_state(), state) for each, state in zip(generators, states, strict=True))


@backends
def test_a_second_backward_pass_sees_the_same_dropout_mask_again(attention):
    q, k, v, g = tensors()
    q.requires_grad_()
    o = attention(q, k, v, dropout_p=0.5, training=True, generator=torch.Generator().manual_seed(2))
    first, second = (torch.autograd.grad(o, q, g, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
