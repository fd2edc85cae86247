"""Every backend of attention computes the formula and its gradients, within what rounding may change."""

import pytest

from tests.attention_calls import OPTIONS, backends, gradients, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import dtypes, judge


@dtypes
@backends
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_values_and_gradients(attention, options, dtype):
    q, k, v, g = tensors(dtype)
    got = gradients(attention, q, k, v, g, **options)
    want = oracle(q, k, v, g, **options)
    assert got.keys() == want.keys()
    for name, (exact, bound) in want.items():
        expected_dtype = options["bias"].dtype if name == "bias" else dtype
        assert got[name].dtype == expected_dtype
        judge(got[name], exact, bound)


@backends
@pytest.mark.parametrize(("n_q", "n_k"), [(1, 19), (19, 1), (19, 13), (13, 13), (8, 7), (7, 14), (1, 1)])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"is_causal": True, "window": 3}], ids=str)
def test_lengths(attention, options, n_q, n_k):
    q, k, v, g = tensors(n_q=n_q, n_k=n_k)
    got = gradients(attention, q, k, v, g, **options)
    for name, (exact, bound) in oracle(q, k, v, g, **options).items():
        judge(got[name], exact, bound)
