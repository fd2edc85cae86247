"""Hidden keys and values may hold anything: neither result nor gradient of a query that cannot see them changes."""

import pytest
import torch

from tests.attention_calls import ATTENTIONS, H, backends, coin, gradients, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import dtypes, forward_and_backward, judge, random
from veriformer.impl.attention_backends.masked_matmul import VisibleScores, VisibleSum, masked_matmul

poisons = pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf, "largest"], ids=str)

N = 13
SEEN_BY_ALL = torch.arange(N) % 4 == 1
EXTRAS = {"": {}, "softcap": {"softcap": 1.1}, "bias": {"bias": random(H, N, N)}}
extras = pytest.mark.parametrize("extra", EXTRAS.values(), ids=EXTRAS)


def poisoned(x, where, poison):
    value = torch.finfo(x.dtype).max if poison == "largest" else poison
    return x.masked_fill(where[..., None], value)


def judge_at(where, got, want):
    exact, bound = want
    judge(got[where], exact[where], bound[where])


@dtypes
@backends
@poisons
@extras
def test_keys_hidden_from_all(attention, dtype, poison, extra):
    q, k, v, g = tensors(dtype, n_q=N, n_k=N)
    options = {"mask": SEEN_BY_ALL[None], **extra}
    got = gradients(attention, q, *(poisoned(x, ~SEEN_BY_ALL, poison) for x in (k, v)), g, **options)
    for name, (exact, bound) in oracle(q, k, v, g, **options).items():
        judge(got[name], exact, bound)
    assert not got["k"][:, :, ~SEEN_BY_ALL].any()
    assert not got["v"][:, :, ~SEEN_BY_ALL].any()


@dtypes
@backends
@poisons
@extras
def test_a_key_hidden_from_some(attention, dtype, poison, extra):
    """Key 9 is broken; earlier queries must not notice."""
    q, k, v, g = tensors(dtype, n_q=N, n_k=N)
    options = {"is_causal": True, **extra}
    want = oracle(q, k, v, g, **options)
    where = torch.arange(N) == 9
    got = gradients(attention, q, *(poisoned(x, where, poison) for x in (k, v)), g, **options)
    for name in {"o", "q"} | ({"bias"} & extra.keys()):
        judge_at((..., slice(9), slice(None)), got[name], want[name])


@backends
@poisons
def test_gradients_of_keys_that_no_afflicted_query_sees(attention, poison):
    """With a window of 2, key 9 afflicts queries 9 and 10, which see keys 8 to 10: all else is untouched."""
    q, k, v, g = tensors(n_q=N, n_k=N)
    options = {"is_causal": True, "window": 2, "bias": random(H, N, N)}
    want = oracle(q, k, v, g, **options)
    where = torch.arange(N) == 9
    got = gradients(attention, q, *(poisoned(x, where, poison) for x in (k, v)), g, **options)
    for name, afflicted in {"o": [9, 10], "q": [9, 10], "bias": [9, 10], "k": [8, 9, 10], "v": [8, 9, 10]}.items():
        judge_at((..., [i for i in range(N) if i not in afflicted], slice(None)), got[name], want[name])


@backends
@pytest.mark.parametrize("softcap", [None, 1.5])
def test_each_query_is_judged_by_its_own_mask(attention, softcap):
    q, k, v, g = tensors(n_q=N, n_k=N)
    mask = coin(2, H, N, N, seed=3)
    want = oracle(q, k, v, g, mask=mask, softcap=softcap)
    where = torch.arange(N) == 6
    broken = poisoned(k, where, torch.nan), poisoned(v, where, torch.inf)
    got = gradients(attention, q, *broken, g, mask=mask, softcap=softcap)
    blind = ~mask[..., 6]
    judge_at(blind, got["o"], want["o"])
    judge_at(blind, got["q"], want["q"])
    assert not got["o"][~blind].isfinite().any()


@backends
def test_a_broken_value_is_seen_where_it_is_visible(attention):
    q, k, v, _ = tensors(n_q=N, n_k=N)
    v[:, :, 9, 2] = torch.inf
    o = attention(q, k, v, is_causal=True)
    assert (o[:, :, 9:, 2] == torch.inf).all()
    assert o[:, :, 9:, :2].isfinite().all()
    assert o[:, :, :9].isfinite().all()


@pytest.mark.parametrize("name", ["reference", "tiled", "tiled by 7"])
@poisons
def test_dropout_draws_the_same_beside_poison(name, poison):
    q, k, v, g = tensors(n_q=N, n_k=N)
    where = torch.arange(N) == 9
    p = 0.4

    def call(v, k=k):
        generator = torch.Generator().manual_seed(5)
        options = {"is_causal": True, "dropout_p": p, "training": True, "generator": generator}
        return gradients(ATTENTIONS[name], q, k, v, g if v.shape == shape else torch.ones(2, H, N, N), **options)

    shape = v.shape
    keep = call(torch.eye(N).double().expand(2, 3, N, N))["o"] > 0
    want = oracle(q, k, v, g, is_causal=True, keep=keep, dropout_p=p)
    got = call(poisoned(v, where, poison), poisoned(k, where, poison))
    judge_at((..., slice(9), slice(None)), got["o"], want["o"])
    judge_at((..., slice(9), slice(None)), got["q"], want["q"])


def test_hidden_rows_take_no_part_in_a_sum_whatever_their_weights_gradients_are():
    visible = coin(2, 7, 6, seed=7)
    weights = random(2, 7, 6).masked_fill(~visible, 0)
    rows, q, g = random(2, 6, 3), random(2, 7, 3), random(2, 7, 6, seed=1)
    broken = rows.clone()
    broken[0, 2, 1], broken[1, 4, 0] = torch.nan, torch.inf
    met = torch.zeros(2, 7, 3, dtype=torch.bool)
    met[0, :, 1], met[1, :, 0] = visible[0, :, 2], visible[1, :, 4]
    for total in (
        masked_matmul(weights, broken, visible),
        forward_and_backward(sum_of(visible), weights, broken, g=q)[0],
    ):
        assert torch.equal(total.isfinite(), ~met)
        assert torch.equal(total[~met], (weights @ rows)[~met])
    s, dq, dk = forward_and_backward(scores_of(visible), q, rows, g=g)
    ds = g.masked_fill(~visible, 0)
    assert torch.equal(s, (q @ rows.mT).masked_fill(~visible, 0))
    assert torch.equal(dq, ds @ rows)
    assert torch.equal(dk, ds.mT @ q)


def sum_of(visible):
    return lambda weights, rows: VisibleSum.apply(weights, rows, visible)


def scores_of(visible):
    return lambda q, k: VisibleScores.apply(q, k, visible)
