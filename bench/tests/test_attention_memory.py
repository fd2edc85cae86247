"""Memory of attention beside arguments and results: the degree of the polynomial through all counts."""

from dataclasses import replace

import pytest

from veriformer import impl
from veriformer.bench.assess import assess
from veriformer.bench.assessment import measure
from veriformer.bench.measuring import Bench
from veriformer.bench.operations.catalogue import FAMILIES
from veriformer.bench.targets import find
from veriformer.bench.verdicts import Verdict


@pytest.mark.whole
@pytest.mark.parametrize(("name", "quadratic"), [("impl:reference", True), ("impl:sdpa", False), ("impl:flex", True)])
def test_extra_memory_of_attention_is_quadratic_as_printed_and_linear_in_a_kernel(name, quadratic):
    found = [one for counts in assess(find(name), ("attention",)) for one in counts]
    extra = [one for one in found if one.quantity == "peak extra bytes"]
    assert extra
    for one in extra:
        assert ("n_k*n_q" in one.measured.text) is quadratic, one
        assert one.verdict is Verdict.CONFIRMED, one


@pytest.mark.whole
@pytest.mark.parametrize("backward", [False, True])
def test_extra_memory_of_causal_linear_attention_is_linear(backward):
    family = next(f for f in FAMILIES if (f.operation, f.case) == ("linear_attention", "causal"))
    short = replace(family, letters="n", call=lambda operation, s: family.call(operation, {**s, "d": 96}))
    found = measure(Bench(short, (impl.linear_attention,), backward)).found.polynomials["peak extra bytes"]
    assert found.degree("n") == 1


@pytest.mark.whole
def test_extra_memory_of_attention_in_blocks_is_linear_in_rows_and_none_in_keys():
    family = next(f for f in FAMILIES if (f.operation, f.case) == ("attention", "a key head for each head"))
    short = replace(family, letters="H n_q n_k", call=lambda operation, s: family.call(operation, {**s, "d": 8}))
    found = measure(Bench(short, (impl.BACKENDS["tiled"],), False)).found.polynomials["peak extra bytes"]
    assert (found.degree("n_q"), found.degree("n_k")) == (1, 0)
