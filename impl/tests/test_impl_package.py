"""The package as others meet it: names, signatures, independence, compilation."""

import inspect
import subprocess
import sys

import pytest
import torch

import veriformer.impl
from tests.attention_calls import ATTENTIONS, EVERYWHERE, OPTIONS, gradients, tensors
from tests.derived_bounds import random
from veriformer.impl import BACKENDS

WITHOUT_ERRORS_OF_THEIR_OWN = {"adamw", "masked_lm", "seq2seq_lm"}
OPERATIONS = {name for name in veriformer.impl.__all__ if inspect.isfunction(getattr(veriformer.impl, name))}


@pytest.mark.parametrize("name", sorted(OPERATIONS - WITHOUT_ERRORS_OF_THEIR_OWN))
def test_operations_say_what_they_raise(name):
    assert "Raises" in getattr(veriformer.impl, name).__doc__


def test_backends_share_one_signature_and_tell_themselves_apart():
    assert set(BACKENDS) == {"reference", "tiled", "sdpa", "flex", "triton"}
    assert len({inspect.signature(attention) for attention in ATTENTIONS.values()}) == 1
    for name, attention in BACKENDS.items():
        assert f"`{name}`: " in attention.__doc__
        assert attention.__module__.endswith(name)
    assert veriformer.impl.attention in BACKENDS.values()


@pytest.mark.whole
def test_nothing_else_of_this_project_is_imported():
    program = "import sys, veriformer.impl; print(*sorted(name for name in sys.modules))"
    names = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    packages = {".".join(name.split(".")[:2]) for name in names if name.startswith("veriformer.")}
    assert packages == {"veriformer.impl"}
    assert "hypothesis" not in names


# The compiler makes an instance of every autograd function it meets, and PyTorch warns of instances.
compiles = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

COMPILED = {
    "softmax": lambda x: veriformer.impl.softmax(x),
    "logsumexp": lambda x: veriformer.impl.logsumexp(x),
    "cross_entropy": lambda x: veriformer.impl.cross_entropy(x, torch.arange(12).view(3, 4), label_smoothing=0.1),
    "perplexity": lambda x: veriformer.impl.perplexity(x, torch.arange(12).view(3, 4)),
    "layer_norm": lambda x: veriformer.impl.layer_norm(x, x[0, 0], x[0, 1]),
    "rms_norm": lambda x: veriformer.impl.rms_norm(x, x[0, 0]),
    "clip_grad_norm": lambda x: veriformer.impl.clip_grad_norm([x, x[0]], 1.0)[0][0],
    "mse_loss": lambda x: veriformer.impl.mse_loss(x, x.detach() + 1),
    "residual": lambda x: veriformer.impl.residual(x, x * x, scale=0.5),
    "gelu": lambda x: veriformer.impl.gelu(x, approximate="tanh"),
    "silu": lambda x: veriformer.impl.silu(x),
    "mlp": lambda x: veriformer.impl.mlp(x, x[0].mT, x[0, :, 0], x[1], x[1, 0]),
    "swiglu": lambda x: veriformer.impl.swiglu(x, x[0].mT, x[1].mT, x[2]),
    "token_embedding": lambda x: veriformer.impl.token_embedding(torch.tensor([0, 3, 3]), x[0]),
    "lm_head": lambda x: veriformer.impl.lm_head(x, x[0]),
    "rope": lambda x: veriformer.impl.rope(x, torch.arange(4)),
}


def compiled_alike(function, *arguments):
    """Compare one graph, forward and backward, with the same operations run eagerly."""
    torch.compiler.reset()
    leaves = [x.detach().clone().requires_grad_() for x in arguments]
    results = []
    for run in (function, torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=False)):
        y = run(*leaves)
        results.append((y, *torch.autograd.grad(y.square().sum(), leaves)))
    assert all(x.any() for x in results[0])
    return all(torch.equal(eager, compiled) for eager, compiled in zip(*results, strict=True))


@pytest.mark.whole
@compiles
@pytest.mark.parametrize("name", COMPILED)
def test_compiles_to_one_graph(name):
    assert compiled_alike(COMPILED[name], random(3, 4, 12))


@pytest.mark.whole
@compiles
@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("options", ["causal", "together"])
def test_attention_compiles_to_one_graph(name, options):
    def function(q, k, v):
        return BACKENDS[name](q, k, v, **OPTIONS[options])

    assert compiled_alike(function, *tensors()[:3])


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_does_not_take_digits_away(name, dtype):
    q, k, v, g = tensors(torch.float32)
    want = gradients(ATTENTIONS[name], q, k, v, g, is_causal=True)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    with torch.autocast("cpu", dtype):
        o = ATTENTIONS[name](*leaves, is_causal=True)
    got = (o, *torch.autograd.grad(o, leaves, g))
    assert all(torch.equal(x, y) for x, y in zip(got, want.values(), strict=True))
