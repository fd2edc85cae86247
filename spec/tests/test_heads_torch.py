"""Vector-Jacobian products of heads and of RoPE against torch.autograd in fp64, within their bounds."""

import numpy as np
import pytest
import torch

from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.positions.rope import rope, rope_vjp

FP64 = RunningError(FORMATS["fp64"])


def assert_within(reference, got):
    exact, bound = FP64.judgeable(reference)
    assert exact.shape == got.shape
    assert (abs(got.detach().numpy() - exact) <= bound).all()
    assert (abs(exact) > bound).any()


def tensors(rng, *shapes):
    return [torch.tensor(rng.normal(size=shape), requires_grad=True) for shape in shapes]


def lifted(xs):
    return [FP64.asarray(x.detach().numpy()) for x in xs]


def heads_of(x, w, heads):
    y = x @ w
    return y.unflatten(-1, (heads, y.shape[-1] // heads)).transpose(1, 2)


@pytest.mark.parametrize(("heads", "groups", "cross", "is_causal"), [(4, 2, False, True), (3, 3, True, False)])
def test_gradients_of_heads(heads, groups, cross, is_causal):
    shapes = [(2, 3, 5), (5, heads * 2), (5, groups * 2), (5, groups * 3), (heads * 3, 4)] + [(2, 4, 5)] * cross
    xs = tensors(np.random.default_rng(0), *shapes)
    x, w_q, w_k, w_v, w_o, context = xs if cross else [*xs, xs[0]]
    q, k, v = heads_of(x, w_q, heads), heads_of(context, w_k, groups), heads_of(context, w_v, groups)
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=True)
    y = o.transpose(1, 2).flatten(-2) @ w_o
    (g,) = tensors(np.random.default_rng(1), y.shape)
    options = {"num_heads": heads, "num_kv_heads": groups, "is_causal": is_causal}
    arrays = lifted(xs)
    options["context"] = arrays[5] if cross else None
    assert_within(multi_head_attention(FP64, *arrays[:5], **options), y)
    gradients = multi_head_attention_vjp(FP64, *arrays[:5], *lifted([g]), **options)
    for reference, got in zip(gradients, torch.autograd.grad(y, xs, g), strict=False):
        assert_within(reference, got)


@pytest.mark.parametrize("pairing", ["interleaved", "half"])
@pytest.mark.parametrize("scaling", [None, ("linear", 2.0), ("ntk", 2.0)], ids=str)
def test_gradients_of_rope(pairing, scaling):
    d, base, divisor = 8, 10000.0, 1.0
    x, g = tensors(np.random.default_rng(2), (2, 5, d), (2, 5, d))
    positions = np.array([0, 3, 700, -4, 12])
    if scaling and scaling[0] == "ntk":
        base *= scaling[1] ** (d / (d - 2))
    elif scaling:
        divisor = scaling[1]
    inverse = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    z = torch.polar(torch.ones(5, d // 2, dtype=torch.float64), torch.tensor(positions / divisor)[:, None] * inverse)
    pair = x.unflatten(-1, (2, d // 2)).transpose(-1, -2) if pairing == "half" else x.unflatten(-1, (d // 2, 2))
    turned = torch.view_as_real(torch.view_as_complex(pair.contiguous()) * z)
    y = (turned.transpose(-1, -2) if pairing == "half" else turned).flatten(-2)
    options = {"pairing": pairing, "scaling": scaling}
    assert_within(rope(FP64, *lifted([x]), positions, **options), y)
    (got,) = torch.autograd.grad(y, x, g)
    assert_within(rope_vjp(FP64, *lifted([x]), positions, *lifted([g]), **options), got)
