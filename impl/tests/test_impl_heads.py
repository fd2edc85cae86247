"""Heads, linear attention and the block: what their forms have in common, and their edges."""

import pytest
import torch

from veriformer.impl import linear_attention, multi_head_attention, transformer_block
from veriformer.impl.layers.linear_attention import chunked, parallel, recurrent


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def params(d=4, f=5, dtype=torch.float64):
    shapes = {"w_q": (d, d), "w_k": (d, d), "w_v": (d, d), "w_o": (d, d), "w1": (d, f), "b1": (f,), "w2": (f, d)}
    shapes |= dict.fromkeys(("b2", "norm1_weight", "norm1_bias", "norm2_weight", "norm2_bias"), (d,))
    return {name: draw(*shape, seed=i, dtype=dtype) for i, (name, shape) in enumerate(shapes.items())}


@pytest.mark.parametrize(("n_q", "n_k"), [(1, 1), (5, 5), (3, 7), (7, 3), (4, 0), (0, 4), (65, 130)])
def test_three_forms_of_linear_attention_are_one(n_q, n_k):
    q, k, v = draw(2, 3, n_q, 4), draw(2, 3, n_k, 4, seed=1), draw(2, 3, n_k, 2, seed=2)
    whole = parallel(q, k, v)
    assert whole.shape == (2, 3, n_q, 2)
    for form in (recurrent, chunked, lambda *x: chunked(*x, chunk=2), lambda *x: linear_attention(*x, is_causal=True)):
        assert ((form(q, k, v) - whole).abs() <= 2.0**-44).all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_without_keys_linear_attention_is_zero_and_so_is_its_gradient(is_causal):
    q = draw(1, 2, 3, 4).requires_grad_()
    out = linear_attention(q, draw(1, 2, 0, 4), draw(1, 2, 0, 5), is_causal=is_causal)
    out.sum().backward()
    assert out.shape == (1, 2, 3, 5)
    assert not out.any()
    assert not q.grad.any()


def test_later_keys_may_hold_anything():
    q, k, v = draw(3, 1, 2, 6, 4)
    before = linear_attention(q, k, v, is_causal=True)
    k[:, :, 4:], v[:, :, 5:] = torch.nan, torch.inf
    after = linear_attention(q, k, v, is_causal=True)
    assert ((after[:, :, :4] - before[:, :, :4]).abs() <= 2.0**-44).all()


def test_small_features_keep_their_digits():
    q, k, v = torch.zeros(1, 1, 1, 1), torch.tensor([-30.0, -31.0])[None, None, :, None], torch.eye(2)[None, None]
    weights = linear_attention(q, k, v)[0, 0, 0]
    assert abs(float(weights[0] / weights[1]) - torch.e) < 2.0**-18


def test_poisoned_padding_reaches_no_weight():
    x, weights = draw(2, 3, 4), [draw(4, 4, seed=i).requires_grad_() for i in range(4)]
    mask = torch.tensor([[1, 1, 0], [0, 1, 1]])
    x[mask == 0] = torch.nan
    out = multi_head_attention(x, *weights, num_heads=2, attention_mask=mask)
    out.sum().backward()
    assert out.isfinite().all()
    assert all(w.grad.isfinite().all() for w in weights)


def test_a_silent_block_is_the_identity_bit_for_bit():
    p = params()
    for name in ("w_o", "w2", "b2"):
        p[name] = torch.zeros_like(p[name])
    x = draw(2, 3, 4, seed=9)
    assert torch.equal(transformer_block(x, p, num_heads=2), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_come_back_as_halves(dtype):
    p = params(dtype=dtype)
    x = draw(2, 3, 4, dtype=dtype)
    weights = [p[name] for name in ("w_q", "w_k", "w_v", "w_o")]
    assert transformer_block(x, p, num_heads=2).dtype == dtype
    assert multi_head_attention(x, *weights, num_heads=2).dtype == dtype


@pytest.mark.parametrize(
    ("name", "value"),
    [("norm", "both"), ("activation", "swish"), ("eps", -1.0), ("num_heads", 3), ("num_kv_heads", 0), ("is_causal", 1)],
)
def test_a_block_refuses_by_name(name, value):
    with pytest.raises((ValueError, TypeError), match="w_q" if name == "num_heads" else name):
        transformer_block(draw(2, 3, 4), params(), **{"num_heads": 2, name: value})


def test_a_missing_parameter_is_named():
    with pytest.raises(ValueError, match="norm2_bias"):
        transformer_block(draw(2, 3, 4), {k: v for k, v in params().items() if k != "norm2_bias"}, num_heads=2)
