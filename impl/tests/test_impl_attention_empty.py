"""Queries that see nothing: zero rows with zero gradient, in every backend and dtype."""

import pytest
import torch

from tests.attention_calls import N_K, N_Q, H, backends, gradients, tensors
from tests.derived_bounds import dtypes

widths = pytest.mark.parametrize("d_v", [4, 5])  # other than d_k, and equal to it
ROW = 4
ONE_ROW_HIDDEN = torch.ones(N_Q, N_K, dtype=torch.bool).index_fill(0, torch.tensor([ROW]), False)
ONE_ROW_AT_MINUS_INFINITY = torch.zeros(H, N_Q, N_K).masked_fill(~ONE_ROW_HIDDEN, -torch.inf)
# Half of the keys of that row are hidden by the mask, the others by the bias.
BY_BOTH = {
    "mask": ONE_ROW_HIDDEN | (torch.arange(N_K) % 2 == 0),
    "bias": ONE_ROW_AT_MINUS_INFINITY.masked_fill(torch.arange(N_K) % 2 == 1, 0.0),
}


@dtypes
@backends
@pytest.mark.parametrize("softcap", [None, 2.0])
@pytest.mark.parametrize(
    "hiding",
    [{"mask": ONE_ROW_HIDDEN}, {"bias": ONE_ROW_AT_MINUS_INFINITY}, BY_BOTH],
    ids=["mask", "bias", "mask and bias"],
)
@widths
def test_one_empty_row(attention, dtype, hiding, softcap, d_v):
    got = gradients(attention, *tensors(dtype, d_v=d_v), softcap=softcap, **hiding)
    assert all(x.isfinite().all() for x in got.values())
    assert not got["o"][:, :, ROW].any()
    assert not got["q"][:, :, ROW].any()
    assert got["o"][:, :, ROW + 1].all()
    if "bias" in got:
        assert not got["bias"][:, ROW].any()
        assert got["bias"][:, ROW + 1].any()


@dtypes
@backends
@widths
def test_queries_before_the_first_key(attention, dtype, d_v):
    got = gradients(attention, *tensors(dtype, n_q=9, n_k=5, d_v=d_v), is_causal=True)
    assert all(x.isfinite().all() for x in got.values())
    assert not got["o"][:, :, :4].any()
    assert not got["q"][:, :, :4].any()
    assert got["o"][:, :, 4:].all()


@dtypes
@backends
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"bias": torch.zeros(13, 0)}], ids=["", "causal", "bias"])
@widths
def test_no_key_at_all(attention, dtype, options, d_v):
    got = gradients(attention, *tensors(dtype, n_k=0, d_v=d_v), **options)
    assert not got["o"].any()
    assert got["q"].shape == (2, H, 13, 5)
    assert not got["q"].any()


@dtypes
@backends
@pytest.mark.parametrize("options", [{}, {"is_causal": True, "window": 2}], ids=["", "causal"])
@widths
def test_no_query_at_all(attention, dtype, options, d_v):
    got = gradients(attention, *tensors(dtype, n_q=0, d_v=d_v), **options)
    assert got["o"].shape == (2, H, 0, d_v)
    assert got["o"].dtype == dtype
    assert not got["k"].any()
    assert not got["v"].any()


@backends
def test_no_batch_element_and_no_width_of_values(attention):
    q, k, v, g = tensors()
    assert gradients(attention, q[:0], k[:0], v[:0], g[:0], is_causal=True)["q"].shape == (0, H, 13, 5)
    assert not gradients(attention, q, k, v[..., :0], g[..., :0])["q"].any()
