"""FlexAttention: that it computes wherever it can, that it means the same, and that a compiler sees one graph."""

import shutil

import pytest
import torch

from tests.attention_calls import D_K, OPTIONS, B, G, H, coin, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import dtypes, judge, random
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends import flex

attention = BACKENDS["flex"]
# The compiler makes an instance of every autograd function it meets, and PyTorch warns of instances.
compiles = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


class Calls:
    """Counter of the calls of PyTorch's FlexAttention."""

    def __init__(self, monkeypatch):
        self.count = 0
        self.function = flex.flex_attention
        monkeypatch.setattr(flex, "flex_attention", self)

    def __call__(self, *arguments, **options):
        self.count += 1
        return self.function(*arguments, **options)


@dtypes
@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_expressed_and_means_the_same(name, dtype, monkeypatch):
    calls = Calls(monkeypatch)
    q, k, v, g = tensors(dtype)
    o = attention(q, k, v, **OPTIONS[name])
    assert calls.count == 1
    judge(o, *oracle(q, k, v, g, **OPTIONS[name])["o"])


@torch.no_grad()
def test_parameters_are_served_where_nothing_is_differentiated(monkeypatch):
    calls = Calls(monkeypatch)
    q, k, v, _ = tensors()
    bias = random(13, 19)
    want = attention(q, k, v, bias=bias, softcap=0.7)
    got = attention(*(x.clone().requires_grad_() for x in (q, k, v)), bias=bias.clone().requires_grad_(), softcap=0.7)
    assert calls.count == 2
    assert torch.equal(got, want)
    assert not got.requires_grad


def poisoned():
    v = random(B, G, 19, 4)
    v[:, :, 3] = torch.nan
    return v


def meta(*shape):
    return torch.empty(*shape, device="meta")


LEFT_TO_THE_FORMULA = {
    "gradients": lambda q, k, v: attention(q.requires_grad_(), k, v),
    "gradients of the bias": lambda q, k, v: attention(q, k, v, bias=torch.zeros(13, 19, requires_grad=True)),
    "dropout": lambda q, k, v: attention(q, k, v, dropout_p=0.5, training=True),
    "poison": lambda q, k, v: attention(q, k, poisoned(), mask=torch.arange(19)[None] != 3),
    "no query": lambda q, k, v: attention(q[:, :, :0], k, v),
    "no key": lambda q, k, v: attention(q, k[:, :, :0], v[:, :, :0]),
    "no value": lambda q, k, v: attention(q, k, v[..., :0]),
    "no batch": lambda q, k, v: attention(q[:0], k[:0], v[:0]),
    "no memory": lambda q, k, v: attention(meta(B, H, 13, D_K), meta(B, G, 19, D_K), meta(B, G, 19, 4)),
    "vmap": lambda q, k, v: torch.vmap(lambda x: attention(x, k, v))(q[None]),
}


@pytest.mark.parametrize("name", LEFT_TO_THE_FORMULA)
def test_what_it_cannot_express_is_left_to_the_formula(name, monkeypatch):
    calls = Calls(monkeypatch)
    o = LEFT_TO_THE_FORMULA[name](*tensors()[:3])
    assert calls.count == 0
    assert o.is_meta or o.isfinite().all()


def graphs_of(function, *arguments):
    """Run a function compiled without gradients; return what it gives, and the operators of its only graph."""
    operators = []

    def look(graph, _):
        operators.extend(str(node.target) for node in graph.graph.nodes)
        return graph

    torch.compiler.reset()
    with torch.no_grad():
        return torch.compile(function, fullgraph=True, backend=look, dynamic=False)(*arguments), operators


@pytest.mark.whole
@compiles
@pytest.mark.parametrize(
    ("options", "dtype", "seen"),
    [
        ({"is_causal": True, "window": 7}, torch.float32, True),
        ({"mask": coin(B, 1, 13, 19), "softcap": 0.7}, torch.bfloat16, True),
        ({"bias": random(13, 19)}, torch.float32, False),  # the kernel cannot read what its graph computes
        ({"is_causal": True}, torch.float64, False),
    ],
    ids=["window", "mask and soft-cap", "bias", "float64"],
)
def test_a_compiler_meets_it_in_one_graph_where_it_has_a_kernel(options, dtype, seen):
    q, k, v, g = tensors(dtype)
    o, operators = graphs_of(lambda q, k, v: attention(q, k, v, **options), q, k, v)
    assert ("flex_attention" in operators) == (seen and flex._COMPILES_ON_CPU)
    judge(o, *oracle(q, k, v, g, **options)["o"])


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, when it loads what compiles for a CPU
@pytest.mark.skipif(not flex._COMPILES_ON_CPU, reason="PyTorch has no FlexAttention for this processor")
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler for C++")
def test_the_compiled_kernel_means_the_same():
    torch.compiler.reset()
    q, k, v, g = tensors(torch.float32)
    mask = coin(B, 1, 13, 19)
    mask[0, :, 4] = False  # a query that sees nothing
    options = {"mask": mask, "is_causal": True, "window": 7, "softcap": 0.7}
    with torch.no_grad():
        o = torch.compile(lambda q, k, v: attention(q, k, v, **options), fullgraph=True, dynamic=False)(q, k, v)
    judge(o, *oracle(q, k, v, g, **options)["o"])
    assert not o[0, :, 4].any()
