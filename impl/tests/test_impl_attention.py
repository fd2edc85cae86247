"""Every backend of attention computes the formula and its gradients, within what rounding may change."""

import pytest

from tests.attention_calls import D_K, D_V, OPTIONS, backends, gradients, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import dtypes, judge

# PyTorch has kernels for values as wide as keys, and others for the rest.
widths = pytest.mark.parametrize("d_v", [D_K, D_V])


@dtypes
@backends
@widths
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_and_gradients(attention, options, dtype, d_v):
    q, k, v, g = tensors(dtype, d_v=d_v)
    got = gradients(attention, q, k, v, g, **options)
    want = oracle(q, k, v, g, **options)
    assert got.keys() == want.keys()
    for name, (exact, bound) in want.items():
        expected_dtype = options["bias"].dtype if name == "bias" else dtype
        assert got[name].dtype == expected_dtype
        judge(got[name], exact, bound)


@backends
@pytest.mark.parametrize(("n_q", "n_k"), [(1, 19), (19, 1), (19, 13), (13, 13), (8, 7), (7, 14), (1, 1)])
@pytest.mark.parametrize("scale", [None, 0.0, -0.4, 1e-50])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"is_causal": True, "window": 3}], ids=str)
@widths
def test_lengths(attention, options, scale, n_q, n_k, d_v):
    q, k, v, g = tensors(n_q=n_q, n_k=n_k, d_v=d_v)
    options = {"scale": scale, **options}
    got = gradients(attention, q, k, v, g, **options)
    for name, (exact, bound) in oracle(q, k, v, g, **options).items():
        judge(got[name], exact, bound)
