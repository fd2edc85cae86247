"""Bad arguments of attention: every backend refuses them alike, naming the argument and saying what to do."""

import math

import numpy as np
import pytest
import torch

from tests.attention_calls import D_K, D_V, N_K, N_Q, B, G, H, backends, coin, tensors

q, k, v, _ = tensors(torch.float32)
MASK = coin(N_Q, N_K)
BIAS = torch.zeros(N_Q, N_K)

REFUSALS = [
    ("q", TypeError, {"q": None}),
    ("q", TypeError, {"q": q.tolist()}),
    ("q", TypeError, {"q": q.long()}),
    ("q", ValueError, {"q": q[0]}),
    ("q", ValueError, {"q": q[None]}),
    ("q", ValueError, {"q": q[..., :0], "k": k[..., :0]}),
    ("k", TypeError, {"k": None}),
    ("k", TypeError, {"k": k.double()}),
    ("k", TypeError, {"k": k.half()}),
    ("k", ValueError, {"k": k[0]}),
    ("k", ValueError, {"k": k[:1]}),
    ("k", ValueError, {"k": k[..., :1]}),
    ("k", ValueError, {"k": k[..., :-1]}),
    ("k", ValueError, {"k": k[:, :0], "v": v[:, :0]}),
    ("k", ValueError, {"k": k.repeat(1, 2, 1, 1)[:, :4], "v": v.repeat(1, 2, 1, 1)[:, :4]}),
    ("k", ValueError, {"k": k.repeat(1, 4, 1, 1), "v": v.repeat(1, 4, 1, 1)}),
    ("k", ValueError, {"k": k.to("meta")}),
    ("v", TypeError, {"v": None}),
    ("v", TypeError, {"v": v.bfloat16()}),
    ("v", ValueError, {"v": v[:, :, :-1]}),
    ("v", ValueError, {"v": v[:, :, :1]}),
    ("v", ValueError, {"v": v[:, :1]}),
    ("v", ValueError, {"v": v[:1]}),
    ("mask", TypeError, {"mask": MASK.tolist()}),
    ("mask", TypeError, {"mask": MASK.float()}),
    ("mask", TypeError, {"mask": MASK.long()}),
    ("mask", ValueError, {"mask": MASK[0]}),
    ("mask", ValueError, {"mask": MASK[None, None, None]}),
    ("mask", ValueError, {"mask": MASK[:, :-1]}),
    ("mask", ValueError, {"mask": MASK.mT}),
    ("mask", ValueError, {"mask": MASK[None].expand(B, N_Q, N_K)}),
    ("mask", ValueError, {"mask": MASK[None].expand(G, N_Q, N_K)}),
    ("mask", ValueError, {"mask": MASK.to("meta")}),
    ("bias", TypeError, {"bias": BIAS.tolist()}),
    ("bias", TypeError, {"bias": MASK}),
    ("bias", TypeError, {"bias": BIAS.long()}),
    ("bias", ValueError, {"bias": BIAS[0]}),
    ("bias", ValueError, {"bias": BIAS[1:]}),
    ("bias", ValueError, {"bias": BIAS[None].expand(B, N_Q, N_K)}),
    ("bias", ValueError, {"bias": BIAS.to("meta")}),
    ("is_causal", TypeError, {"is_causal": None}),
    ("is_causal", TypeError, {"is_causal": 1}),
    ("window", ValueError, {"window": 3}),
    ("window", ValueError, {"window": 0, "is_causal": True}),
    ("window", ValueError, {"window": -1, "is_causal": True}),
    ("window", TypeError, {"window": 2.0, "is_causal": True}),
    ("window", TypeError, {"window": True, "is_causal": True}),
    ("scale", TypeError, {"scale": "1"}),
    ("scale", TypeError, {"scale": True}),
    ("scale", ValueError, {"scale": math.nan}),
    ("scale", ValueError, {"scale": math.inf}),
    ("softcap", ValueError, {"softcap": 0.0}),
    ("softcap", ValueError, {"softcap": -1.0}),
    ("softcap", ValueError, {"softcap": math.nan}),
    ("softcap", TypeError, {"softcap": "30"}),
    ("dropout_p", ValueError, {"dropout_p": -0.1}),
    ("dropout_p", ValueError, {"dropout_p": 1.1, "training": True}),
    ("dropout_p", ValueError, {"dropout_p": math.nan}),
    ("dropout_p", TypeError, {"dropout_p": None}),
    ("training", TypeError, {"training": 1}),
    ("generator", TypeError, {"generator": 0}),
]


@backends
@pytest.mark.parametrize(("name", "error", "wrong"), REFUSALS)
def test_refusals(attention, name, error, wrong):
    with pytest.raises(error, match=rf"^{name}: expected .+, got .+; .+"):
        attention(**({"q": q, "k": k, "v": v} | wrong))


@backends
def test_numbers_of_numpy_are_numbers(attention):
    want = attention(q, k, v, is_causal=True, window=5, scale=0.5, softcap=2.0, dropout_p=0.25)
    numbers = {"scale": np.float32(0.5), "softcap": np.float64(2), "dropout_p": np.float16(0.25)}
    assert torch.equal(attention(q, k, v, is_causal=True, window=np.int64(5), **numbers), want)


@backends
def test_equal_sizes_are_no_reason_to_refuse(attention):
    assert attention(q, k, v).shape == (B, H, N_Q, D_V)
    assert attention(q, k, v, mask=MASK[None].expand(H, N_Q, N_K)).shape == (B, H, N_Q, D_V)
    assert attention(q, k, k).shape == (B, H, N_Q, D_K)
