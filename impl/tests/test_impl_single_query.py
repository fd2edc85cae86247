"""Attention of a single query per head, as in decoding: its own code paths agree, eager and compiled."""

import pytest
import torch

from tests.attention_calls import N_K, B, G, H, coin, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import dtypes, judge, random
from veriformer.impl import BACKENDS

sdpa = BACKENDS["sdpa"]
OPTIONS = {
    "plain": {},
    "window": {"is_causal": True, "window": 3},
    "mask of keys": {"mask": coin(B, 1, 1, N_K)},
    "mask of heads": {"mask": coin(H, 1, 1)},
    "mask of nothing": {"mask": torch.zeros(1, N_K, dtype=torch.bool)},
    "bias of heads": {"bias": random(H, 1, N_K)},
    "together": {"bias": random(B, H, 1, N_K), "mask": coin(1, N_K), "is_causal": True, "window": 9, "scale": -0.7},
    "soft-cap": {"softcap": 0.7, "bias": random(1, 1)},
}


@pytest.mark.whole
@dtypes
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_compiled_and_eager(options, dtype):
    q, k, v, g = tensors(dtype, n_q=1)
    exact, bound = oracle(q, k, v, g, **options)["o"]
    torch.compiler.reset()
    compiled = torch.compile(lambda *x: sdpa(*x, **options), fullgraph=True, backend="eager")
    assert H > G > 1
    with torch.no_grad():
        for attention in (compiled, lambda *x: sdpa(*x, **options)):
            judge(attention(q, k, v), exact, bound)
