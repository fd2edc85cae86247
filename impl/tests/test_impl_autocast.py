"""Autocast: training steps in one graph with it on and off, and the question of whether it is on."""

from pathlib import Path

import pytest
import torch

from veriformer.impl.layers.grouped_gemm import grouped_linear
from veriformer.impl.losses.linear_cross_entropy import linear_cross_entropy
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.families import gpt
from veriformer.impl.precision import uses_autocast
from veriformer.impl.training.objective import Objective

# Dynamo makes an instance of each autograd function that it traces.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


def objective():
    """Return a small decoder with its loss."""
    sizes = {"vocab_size": 37, "d_model": 16, "num_layers": 1, "num_heads": 2, "max_length": 8}
    return Objective(Decoder(gpt(**sizes).replace(attention="sdpa")))


@pytest.fixture
def autocast_of_cuda(request):
    """Turn autocast on or off for CUDA, where ``torch.autocast`` would turn it off for want of a device."""
    before = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", request.param)
    yield request.param
    torch.set_autocast_enabled("cuda", before)


def test_nobody_asks_in_a_call_whether_a_device_has_autocast():
    """PyTorch 2.11 does not trace that question, so that a compiled step breaks into two graphs."""
    package = Path(__file__).parents[1] / "veriformer"
    asking = [file.name for file in package.rglob("*.py") if "is_autocast_available" in file.read_text()]
    assert asking == ["precision.py"]


@pytest.mark.slow("the compiler is loaded")
@pytest.mark.parametrize("enabled", [False, True])
def test_a_training_step_is_one_graph(enabled):
    ids = torch.arange(16).reshape(2, 8)
    model = objective()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
        compiled(ids, ids).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("autocast_of_cuda", [False, True], indirect=True)
def test_autocast_of_a_gpu_is_known_without_one(autocast_of_cuda):
    assert uses_autocast("cuda") is autocast_of_cuda
    assert not uses_autocast("cpu")


def test_a_device_without_autocast_is_computed_as_it_is():
    assert not uses_autocast("meta")
    with torch.device("meta"):
        loss = linear_cross_entropy(torch.empty(3, 4), torch.empty(5, 4), torch.zeros(3, dtype=torch.int64))
        o = grouped_linear(torch.empty(3, 4), torch.empty(2, 4, 5), torch.empty(2, 5), torch.tensor([1, 2]))
    assert (loss.dtype, o.shape) == (torch.float32, (3, 5))
