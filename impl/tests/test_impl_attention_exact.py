"""Cases of attention in which no rounding happens, so that every backend must give the very same bits."""

import pytest
import torch

from tests.attention_calls import ATTENTIONS, OPTIONS, G, H, backends, gradients, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import dtypes, judge, random


def small_integers(*shape, dtype=torch.float64, seed=0):
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@dtypes
@backends
def test_without_scale_the_mean_of_a_power_of_two_of_values_is_exact(attention, dtype):
    q, k = tensors(dtype, n_k=16)[:2]
    v = small_integers(2, G, 16, 4, dtype=dtype)
    o = attention(q, k, v, scale=0.0)
    assert torch.equal(o, v.mean(2, keepdim=True).repeat_interleave(H // G, 1).expand_as(o))


@dtypes
@backends
def test_a_query_that_sees_one_key_gives_its_value_to_the_head_of_its_group(attention, dtype):
    q, k, v, _ = tensors(dtype, n_q=13, n_k=13)
    o = attention(q, k, v, is_causal=True, window=1)
    for h in range(H):
        assert torch.equal(o[:, h], v[:, h // (H // G)])


@dtypes
@backends
def test_causality_is_aligned_at_the_bottom_right(attention, dtype):
    q, k, v, _ = tensors(dtype, n_q=5, n_k=9)
    o = attention(q, k, v, is_causal=True, window=1)
    assert torch.equal(o[:, 0], v[:, 0, 4:])


@dtypes
@backends
def test_a_score_far_above_all_others_takes_all_the_weight(attention, dtype):
    q, k, v, _ = tensors(dtype)
    bias = torch.zeros(13, 19)
    bias[torch.arange(13), torch.arange(13) + 2] = 1e4
    o = attention(q, k, v, bias=bias)
    assert torch.equal(o, v[:, :, 2:15].repeat_interleave(H // G, 1))


@dtypes
@backends
def test_scores_of_a_hundred_thousand_overflow_nothing(attention, dtype):
    q, k, v, g = tensors(dtype, n_q=13, n_k=13)
    q, k = q.sign() * 250, k.sign() * 250
    got = gradients(attention, q, k, v, g, scale=1.0)
    assert all(x.isfinite().all() for x in got.values())
    s = q.double() @ k.double().repeat_interleave(H // G, 1).mT
    assert s.abs().max() > 1e5
    best = (s == s.amax(-1, keepdim=True)).double()
    values = v.double().repeat_interleave(H // G, 1)
    alone = best.sum(-1) == 1
    assert torch.equal(got["o"][alone].double(), (best @ values)[alone])


@backends
def test_halves_do_not_overflow_on_the_way_to_a_finite_gradient(attention):
    q, k, v, g = tensors(torch.float16, n_q=13, n_k=13)
    k, v, g = k * 2.0**-10, v * 2.0**9, g * 2.0**9  # the gradient of the scores is beyond 65504, that of q is not
    got = gradients(attention, q, k, v, g)
    assert float((g.float() @ v.float().repeat_interleave(H // G, 1).mT).abs().max()) > 65504
    assert got["q"].isfinite().all()
    assert got["q"].abs().max() > 0


@dtypes
@backends
@pytest.mark.parametrize("shift", [-(2.0**17), 2.0**17])
def test_what_is_hidden_stays_hidden_however_low_or_high_the_rest(attention, shift, dtype):
    q, k = small_integers(2, H, 13, 5, dtype=dtype), small_integers(2, G, 13, 5, dtype=dtype, seed=1)
    v, g = tensors(dtype, n_q=13, n_k=13)[2:]
    want, got = (
        gradients(attention, q, k, v, g, is_causal=True, scale=1.0, bias=torch.full((13, 13), height))
        for height in (0.0, shift)
    )
    assert all(torch.equal(got[name], want[name]) for name in want)


@backends
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_arguments_are_left_alone(attention, options):
    arguments = tensors()
    before = [x.clone() for x in arguments] + [x.clone() for x in options.values() if isinstance(x, torch.Tensor)]
    held = arguments + [x for x in options.values() if isinstance(x, torch.Tensor)]
    versions = [x._version for x in held]
    gradients(attention, *arguments, **options)
    attention(*arguments[:3], **options)
    assert [x._version for x in held] == versions
    assert all(torch.equal(x, y) for x, y in zip(held, before, strict=True))


def test_a_mask_that_changes_before_the_backward_pass_is_noticed():
    q, k, v, g = tensors()
    mask = torch.ones(13, 19, dtype=torch.bool)
    o = ATTENTIONS["tiled"](q.requires_grad_(), k, v, mask=mask)
    mask[:, 5] = False
    with pytest.raises(RuntimeError, match="modified"):
        o.backward(g)


def _strange_layouts(x, dim):
    """The same numbers, transposed in memory, in every second place, and repeated without memory of their own."""
    yield x.transpose(1, 2).contiguous().transpose(1, 2)
    yield x.mT.contiguous().mT
    yield torch.stack([x, x * torch.nan], -1).flatten(-2)[..., ::2]
    yield x.flip(dim).flip(dim)


@backends
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"bias": random(H, 13, 19)}], ids=["", "causal", "bias"])
@pytest.mark.parametrize("d_v", [4, 5])
def test_layout_changes_nothing_but_rounding(attention, options, d_v):
    arguments = tensors(d_v=d_v)
    want = oracle(*arguments, **options)
    for layouts in zip(*(_strange_layouts(x, 2) for x in arguments), strict=True):
        got = gradients(attention, *layouts, **options)
        for name, (exact, bound) in want.items():
            judge(got[name], exact, bound)


@backends
@pytest.mark.parametrize("d_v", [4, 5])
def test_expanded_tensors_and_cotangents(attention, d_v):
    q, k, v, g = (x[:1, :1, :1].expand_as(x) for x in tensors(d_v=d_v))
    bias = random(1, 1, 19).expand(H, 13, 19)
    k = k * torch.arange(19)[:, None]
    got = gradients(attention, q, k, v, g, bias=bias)
    for name, (exact, bound) in oracle(q, k, v, g, bias=bias).items():
        judge(got[name], exact, bound)
    q = q.clone().requires_grad_()
    attention(q, k, v).sum().backward()
    judge(q.grad, *oracle(q, k, v, torch.ones_like(g))["q"])
