"""Dropout in the Triton kernels: one mask for both passes, whatever the tiles and the dtype, and a fair draw."""

import math

import pytest
import torch

from tests.attention_calls import N_Q, OPTIONS, B, H, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import judge, random
from tests.triton_kernels import DEVICE, by_16, kernels, moved, on_device, u_factor
from veriformer.impl.attention_backends.flash.triton import attention_in_tiles

pytestmark = kernels


def seeded(seed):
    return torch.Generator(DEVICE).manual_seed(seed)


def survivors(attention, q, k, p, seed, **options):
    """Return which weights survive: with the identity for values, the output is the matrix of weights."""
    n_k = k.shape[2]
    identity = torch.eye(n_k).to(q.dtype).expand(*k.shape[:2], n_k, n_k)
    options = {name: moved(x) for name, x in options.items()}
    generator = seeded(seed)
    o = attention(*map(moved, (q, k, identity)), dropout_p=p, training=True, generator=generator, **options)
    return (o > 0).cpu()


@pytest.mark.parametrize(
    ("name", "dtype"), [("plain", torch.float32), ("together", torch.float32), ("window 7", torch.bfloat16)]
)
def test_survivors_are_scaled_and_backward_sees_the_same_mask(name, dtype):
    q, k, v, g = tensors(dtype)
    p, options = 0.3, OPTIONS[name]
    keep = survivors(by_16, q, k, p, 1, **options)
    want = oracle(q, k, v, g, keep=keep, dropout_p=p, **options, u_factor=u_factor(dtype))
    got = on_device(by_16, q, k, v, g, dropout_p=p, training=True, generator=seeded(1), **options)
    for key, (exact, bound) in want.items():
        judge(got[key], exact, bound)


def test_the_mask_depends_on_neither_tiles_nor_dtype():
    q, k, _, _ = tensors(torch.float32)
    q, k = q[:1, :2], k[:1, :1]
    want = survivors(by_16, q, k, 0.5, 9)
    assert not want.all()
    assert torch.equal(want, survivors(attention_in_tiles(32), q, k, 0.5, 9))
    assert torch.equal(want, survivors(by_16, q.bfloat16(), k.bfloat16(), 0.5, 9))
    assert not torch.equal(want, survivors(by_16, q, k, 0.5, 8))


@pytest.mark.parametrize("own", [True, False], ids=["own", "global"])
def test_generators_move_on_in_forward_and_stand_still_in_backward(own):
    q, k, v, g = (moved(x)[:1, :1] for x in tensors(torch.float32))
    generator = seeded(3) if own else None
    watched = generator or (torch.default_generator if DEVICE == "cpu" else torch.cuda.default_generators[0])
    watched.manual_seed(3)
    first, second = (by_16(q, k, v, dropout_p=0.5, training=True, generator=generator) for _ in range(2))
    watched.manual_seed(3)
    o = by_16(q.requires_grad_(), k, v, dropout_p=0.5, training=True, generator=generator)
    state = watched.get_state()
    one, two = (torch.autograd.grad(o, q, g, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, o)
    assert not torch.equal(first, second)
    assert torch.equal(one, two)
    assert torch.equal(watched.get_state(), state)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_nothing_is_dropped_at_zero_and_everything_at_one(p):
    q, k, v, g = (x[:, :2] for x in tensors(torch.float32))
    k, v = k[:, :1], v[:, :1]
    got = on_device(by_16, q, k, v, g, dropout_p=p, training=True)
    want = on_device(by_16, q, k, v, g)
    assert all(torch.equal(x, want[name]) if p == 0 else not x.any() for name, x in got.items())


def test_weights_are_dropped_independently():
    """Rates, and agreements of every weight with its neighbours along all four axes, lie within six deviations."""
    p, n = 0.25, 40
    keep = survivors(attention_in_tiles(64), random(B, H, n, 3).float(), random(B, H, n, 3, seed=1).float(), p, 2)

    def assert_rate(hits, rate):
        assert abs(hits.double().mean().item() - rate) <= 6 * math.sqrt(rate * (1 - rate) / hits.numel())

    alike = p**2 + (1 - p) ** 2
    assert_rate(keep, 1 - p)
    assert_rate(keep[0] == keep[1], alike)
    assert_rate(keep[:, 1:] == keep[:, :-1], alike)
    assert_rate(keep[:, :, 1:] == keep[:, :, :-1], alike)
    assert_rate(keep[..., 1:] == keep[..., :-1], alike)


def test_the_rows_of_one_head_are_those_of_a_call_with_fewer_queries():
    """A function of seed, head, query and key: what is left out changes nothing for the rest."""
    q, k, _, _ = tensors(torch.float32)
    whole, part = (survivors(by_16, q[:1, :2, :rows], k[:1, :1], 0.5, 4) for rows in (N_Q, 5))
    assert torch.equal(whole[:, :, :5], part)
