"""Dropout in attention: what it does to the weights, that backward uses the same mask, and that the draw is fair."""

import math

import pytest
import torch

from tests.attention_calls import ATTENTIONS, OPTIONS, B, G, H, backends, gradients, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import DTYPES, dtypes, judge, random

HIDINGS = ("plain", "window 7", "mask of heads", "bias −∞", "together")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def kept(attention, q, k, p, seed, **options):
    """Return which weights survive: with the identity for values, the output is the matrix of weights."""
    n_k = k.shape[2]
    identity = torch.eye(n_k).to(q.dtype).expand(q.shape[0], k.shape[1], n_k, n_k)
    return attention(q, k, identity, dropout_p=p, training=True, generator=seeded(seed), **options) > 0


@dtypes
@backends
@pytest.mark.parametrize("name", HIDINGS)
def test_survivors_are_scaled_and_backward_sees_the_same_mask(attention, name, dtype):
    q, k, v, g = tensors(dtype)
    p, options = 0.3, OPTIONS[name]
    keep = kept(attention, q, k, p, seed=1, **options)
    want = oracle(q, k, v, g, keep=keep, dropout_p=p, **options)
    got = gradients(attention, q, k, v, g, dropout_p=p, training=True, generator=seeded(1), **options)
    for key, (exact, bound) in want.items():
        judge(got[key], exact, bound)


@backends
def test_a_second_backward_pass_sees_the_same_mask_again(attention):
    q, k, v, g = tensors()
    q.requires_grad_()
    o = attention(q, k, v, dropout_p=0.5, training=True, generator=seeded(2))
    first, second = (torch.autograd.grad(o, q, g, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


@backends
def test_equal_states_give_equal_results_and_the_state_moves_on(attention):
    q, k, v, _ = tensors()
    generator = seeded(3)
    first, second = (attention(q, k, v, dropout_p=0.5, training=True, generator=generator) for _ in range(2))
    again = attention(q, k, v, dropout_p=0.5, training=True, generator=seeded(3))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


@backends
def test_no_generator_means_the_global_one(attention):
    q, k, v, g = tensors()
    torch.manual_seed(4)
    first = gradients(attention, q, k, v, g, dropout_p=0.5, training=True)
    torch.manual_seed(4)
    again = gradients(attention, q, k, v, g, dropout_p=0.5, training=True)
    other = gradients(attention, q, k, v, g, dropout_p=0.5, training=True)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["o"], other["o"])


@backends
@pytest.mark.parametrize("generator", [seeded(5), None], ids=["own", "global"])
def test_backward_leaves_the_generators_where_forward_left_them(attention, generator):
    q, k, v, g = tensors()
    o = attention(q.requires_grad_(), k, v, dropout_p=0.5, training=True, generator=generator)
    generators = [torch.default_generator] + [generator] * (generator is not None)
    states = [each.get_state() for each in generators]
    o.backward(g)
    assert all(torch.equal(each.get_state(), state) for each, state in zip(generators, states, strict=True))


@backends
@pytest.mark.parametrize(
    "options", [{"training": False, "dropout_p": 0.7}, {"training": True, "dropout_p": 0.0}], ids=str
)
def test_nothing_is_dropped_outside_training_or_at_zero(attention, options):
    q, k, v, _ = tensors()
    generator = seeded(6)
    assert torch.equal(attention(q, k, v, generator=generator, **options), attention(q, k, v))
    assert torch.equal(generator.get_state(), seeded(6).get_state())


@dtypes
@backends
@pytest.mark.parametrize("generator", [None, 7], ids=["global", "own"])
def test_at_one_everything_is_dropped(attention, dtype, generator):
    generator = generator and seeded(generator)
    got = gradients(attention, *tensors(dtype), dropout_p=1.0, training=True, generator=generator)
    assert all(not x.any() for x in got.values())


@backends
def test_weights_are_dropped_independently(attention):
    """Rates, and agreements of every weight with its neighbours in all four directions, lie within six deviations."""
    p, n = 0.25, 30
    q, k = random(B, H, n, 5), random(B, G, n, 5, seed=1)
    keep = kept(attention, q, k, p, seed=8)

    def assert_rate(events, probability):
        deviation = math.sqrt(probability * (1 - probability) * events.numel())
        assert abs(int(events.sum()) - probability * events.numel()) <= 6 * deviation

    assert_rate(keep, 1 - p)
    for axis in range(4):
        ahead, behind = keep.narrow(axis, 1, keep.shape[axis] - 1), keep.narrow(axis, 0, keep.shape[axis] - 1)
        assert_rate(ahead == behind, p**2 + (1 - p) ** 2)
    for step in (7, 14, 15):  # from tile to tile, and from half to half
        assert_rate(keep[..., step:] == keep[..., :-step], p**2 + (1 - p) ** 2)
        assert_rate(keep[..., step:, :] == keep[..., :-step, :], p**2 + (1 - p) ** 2)


@pytest.mark.parametrize("name", ["reference", "tiled", "tiled by 7"])
def test_the_mask_does_not_depend_on_the_dtype(name):
    masks = [kept(ATTENTIONS[name], *tensors(dtype)[:2], 0.5, seed=9) for dtype in DTYPES]
    assert all(torch.equal(masks[0], mask) for mask in masks[1:])
