"""Operations on tensors without numbers, and on several devices: what `verify` does not ask for."""

import pytest
import torch

from tests.derived_bounds import DTYPES, forward_and_backward, random
from veriformer.impl import (
    BACKENDS,
    clip_grad_norm,
    cross_entropy,
    layer_norm,
    perplexity,
    rms_norm,
)
from veriformer.impl.generation.generate import generate
from veriformer.impl.generation.sampling import GREEDY, Sampling
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.families import gpt, llama

CLASSES = torch.tensor([[3, 0, 6, -100, 2], [1, -100, 6, 5, 5]])


@pytest.mark.parametrize("norm", [layer_norm, rms_norm])
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_shapes(norm, dtype):
    x, w = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((2, 11), (11,)))
    y, dx, dw = forward_and_backward(norm, x, w, g=x)
    assert (y.shape, dx.shape, dw.shape) == (x.shape, x.shape, w.shape)
    assert y.dtype == dx.dtype == dw.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
def test_losses_of_shapes(dtype):
    z = torch.empty(2, 5, 7, dtype=dtype, device="meta", requires_grad=True)
    for target in (CLASSES, random(2, 5, 7).softmax(-1)):
        loss = cross_entropy(z, target.to("meta"), label_smoothing=0.1)
        assert loss.dtype == dtype
        assert torch.autograd.grad(loss, z)[0].shape == z.shape
    assert perplexity(z, CLASSES.to("meta")).shape == ()


def test_clipping_of_shapes():
    (clipped,), norm = clip_grad_norm([torch.empty(3, 4, device="meta", dtype=torch.float16)], 1.0)
    assert (clipped.shape, clipped.dtype, norm.shape, norm.dtype) == ((3, 4), torch.float16, (), torch.float32)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.7, top_k=5, top_p=0.9)])
@pytest.mark.parametrize("family", [gpt, llama])
def test_decoding_reads_nothing_back(family, sampling):
    """A tensor without numbers refuses to be read by the host, which would wait for a GPU at every token."""
    with torch.device("meta"):
        model = Decoder(family(vocab_size=50, d_model=48, num_layers=2, num_heads=4))
        ids = torch.empty(2, 5, dtype=torch.int64)
    assert generate(model, ids, max_new_tokens=4, sampling=sampling).shape == (2, 9)


@pytest.mark.parametrize("name", [name for name in BACKENDS if name != "triton"])
@pytest.mark.parametrize("moved", ["k", "mask", "bias"])
def test_attention_refuses_tensors_that_lie_elsewhere(name, moved):
    call = {x: torch.zeros(1, 2, 3, 4) for x in ("q", "k", "v")}
    call |= {"mask": torch.ones(3, 3, dtype=torch.bool), "bias": torch.zeros(3, 3)}
    with pytest.raises(ValueError, match=rf"^{moved}: expected device cpu, .+, got meta; .+"):
        BACKENDS[name](**(call | {moved: call[moved].to("meta")}))
