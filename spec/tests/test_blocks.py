"""The Transformer block and its gradients against torch, its paths, and the decoder block against torch."""

import numpy as np
import pytest
import torch

from tests.values import EXACT, XP, floats
from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.blocks.decoder_block import decoder_block
from veriformer.spec.blocks.published import parameters
from veriformer.spec.blocks.transformer_block import transformer_block, transformer_block_vjp

FP64 = RunningError(FORMATS["fp64"])
D = 4


def arguments(heads=2, groups=1, n=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, n, D)), parameters(rng, D, heads, groups, 5)


def run(x, params, xp=XP, **options):
    return floats(transformer_block(xp, xp.asarray(x), params, **options))


def torch_block(x, p, norm, causal, eps):
    def normalise(h, i):
        return torch.nn.functional.layer_norm(h, h.shape[-1:], p[f"norm{i}_weight"], p[f"norm{i}_bias"], eps)

    def attention(h):
        q, k, v = ((h @ p[f"w_{z}"]).unflatten(-1, (-1, 2)).transpose(1, 2) for z in "qkv")
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return o.transpose(1, 2).flatten(-2) @ p["w_o"]

    def network(h):
        return torch.nn.functional.gelu(h @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    for i, branch in ((1, attention), (2, network)):
        x = x + branch(normalise(x, i)) if norm == "pre" else normalise(x + branch(x), i)
    return x


def assert_within(reference, got):
    exact, bound = FP64.judgeable(reference)
    assert exact.shape == got.shape
    assert (abs(got.detach().numpy() - exact) <= bound).all()
    assert (abs(exact) > bound).any()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_gradients_are_those_of_autograd(norm):
    x, params = arguments(heads=4, groups=2)
    tensors = {name: torch.tensor(a, requires_grad=True) for name, a in ({"x": x} | params).items()}
    y = torch_block(tensors["x"], tensors, norm, True, 1e-3)
    g = np.random.default_rng(5).normal(size=x.shape)
    options = {"num_heads": 4, "num_kv_heads": 2, "norm": norm, "is_causal": True, "eps": 1e-3}
    lifted = {name: FP64.asarray(a) for name, a in params.items()}
    assert_within(transformer_block(FP64, FP64.asarray(x), lifted, **options), y)
    dx, dparams = transformer_block_vjp(FP64, FP64.asarray(x), lifted, FP64.asarray(g), **options)
    assert set(dparams) == set(params)
    gradients = torch.autograd.grad(y, list(tensors.values()), torch.tensor(g))
    for name, got in zip(tensors, gradients, strict=True):
        assert_within(dx if name == "x" else dparams[name], got)


def stacked(x, params, norm):
    h = EXACT.asarray(x)
    for _ in range(3):
        h = transformer_block(EXACT, h, params, num_heads=2, num_kv_heads=1, norm=norm)
    return h


def test_a_constant_passes_a_stack_with_norms_in_the_branches():
    x, params = arguments()
    h, shifted = (stacked(EXACT.asarray(x) + c, params, "pre") for c in (0, 1))
    assert (floats(shifted - h) == 1).all()


def test_no_constant_passes_a_norm_on_the_path():
    x, params = arguments()
    params |= {"norm2_weight": np.ones(D), "norm2_bias": np.zeros(D)}
    assert (abs(floats(EXACT.sum(stacked(x, params, "post"), axis=-1))) < 2.0**-250).all()
    assert (abs(floats(EXACT.sum(stacked(x, params, "pre"), axis=-1))) > 2.0**-10).any()


def test_silent_branches_are_the_identity():
    x, params = arguments()
    silent = params | {name: 0 * params[name] for name in ("w_o", "w2", "b2")}
    assert (run(x, silent, num_heads=2, num_kv_heads=1) == x).all()
    assert (run(x, silent, num_heads=2, num_kv_heads=1, norm="post") != x).any()


def test_what_is_not_known():
    x, params = arguments()
    assert (
        run(x, params | {"w_more": x}, num_heads=2, num_kv_heads=1) == run(x, params, num_heads=2, num_kv_heads=1)
    ).all()
    with pytest.raises(KeyError, match="sandwich"):
        run(x, params, num_heads=2, num_kv_heads=1, norm="sandwich")


def test_a_decoder_block_is_its_three_sublayers_one_after_the_other():
    x, params = arguments()
    context, cross = arguments(n=5, seed=1)
    options = {"num_heads": 2, "num_kv_heads": 1}
    y = floats(decoder_block(XP, XP.asarray(x), XP.asarray(context), params, cross, **options))
    t = {name: torch.tensor(value) for name, value in params.items()}
    u = {name: torch.tensor(value) for name, value in cross.items()}

    def heads(h, c, weights, causal):
        q, k, v = (z @ weights[w] for z, w in ((h, "w_q"), (c, "w_k"), (c, "w_v")))
        q, k, v = (z.unflatten(-1, (-1, 2)).transpose(1, 2) for z in (q, k, v))
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
        return o.transpose(1, 2).flatten(2) @ weights["w_o"]

    def norm(h, weights, place):
        weight, bias = weights[f"norm{place}_weight"], weights[f"norm{place}_bias"]
        return torch.nn.functional.layer_norm(h, (D,), weight, bias)

    h = torch.tensor(x)
    h = h + heads(*[norm(h, t, 1)] * 2, t, True)
    h = h + heads(norm(h, u, 1), torch.tensor(context), u, False)
    h = h + torch.nn.functional.gelu(norm(h, t, 2) @ t["w1"] + t["b1"]) @ t["w2"] + t["b2"]
    arguments_ = (FP64.asarray(x), FP64.asarray(context), params, cross)
    exact, bound = FP64.judgeable(decoder_block(FP64, *arguments_, **options))
    assert (np.abs(h.numpy() - exact) <= bound).all()
    assert (np.abs(y - exact) <= bound).all()
