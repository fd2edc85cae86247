"""Kernels, bytes, memory and waits of a training step, counted without a device beside what others write."""

import json
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from veriformer import impl
from veriformer.bench.launches import AsOnGPU, Launches, fake_gpu
from veriformer.bench.peers.catalogue import GPT2, Sizes
from veriformer.bench.peers.models import PlainGPT, gpt2
from veriformer.bench.targets import adamw, gpt_loss
from veriformer.impl.losses.linear_cross_entropy import linear_cross_entropy
from veriformer.impl.models import Decoder, gpt
from veriformer.impl.positions.rope import rotate
from veriformer.impl.training.packing import PackedRows
from veriformer.impl.training.trainer import Trainer, TrainingConfig, clip_gradients

HALF = torch.bfloat16


def ours(sizes):
    names = {"vocabulary": sizes.vocabulary, "width": sizes.width, "layers": sizes.layers, "heads": sizes.heads}
    return gpt_loss(**names, length=sizes.length)


class TheirGPT(nn.Module):
    """transformers' GPT-2 with the loss of nanoGPT, without a token for padding.

    It takes fake tensors for those of a compiler, and leaves out a question to the device that a GPU is asked.
    """

    def __init__(self, sizes):
        super().__init__()
        self.model = gpt2(sizes)
        self.model.config.pad_token_id = None

    def forward(self, ids, labels):
        logits = self.model(ids, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


@cache
def step(make, layers, half=None):
    """Count a step of GPT-2 with so many layers, in float32 or by autocast, but for the optimizer."""
    sizes = Sizes(layers=layers, width=GPT2.width, heads=GPT2.heads, length=GPT2.length, batch=GPT2.batch,
                  vocabulary=GPT2.vocabulary)  # fmt: skip
    with fake_gpu():
        model, ids = make(sizes), torch.empty(sizes.batch, sizes.length, dtype=torch.int64)
        with Launches([*model.parameters(), ids]) as found:
            with torch.autocast("cpu", half) if half else nullcontext():
                loss = model(ids, ids)
            loss.backward()
    return found


def total(make, layers, half=None):
    return step(make, layers, half).kernels.total()


@pytest.mark.parametrize(("half", "of_a_layer"), [(None, 29), (HALF, 51)], ids=["fp32", "autocast"])
def test_a_layer_launches_no_more_than_a_plain_one(half, of_a_layer):
    assert [total(make, 2, half) - total(make, 1, half) for make in (ours, PlainGPT)] == [of_a_layer] * 2


LOSS = {None: 58, HALF: 83}
"""Kernels by which a loss of six parts exceeds one of all tokens at once. Liger's has 64 parts, of 7 kernels or 8."""


@pytest.mark.parametrize("half", LOSS, ids=["fp32", "autocast"])
def test_the_loss_launches_as_many_more_as_it_has_parts(half):
    assert total(ours, 1, half) - total(PlainGPT, 1, half) == LOSS[half] <= 64 * 7


@pytest.mark.parametrize("half", [None, HALF], ids=["fp32", "autocast"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_step_moves_fewer_bytes_than_others(layers, half):
    moved, by_plain, by_theirs = (step(make, layers, half).bytes for make in (ours, PlainGPT, TheirGPT))
    assert moved < by_plain < by_theirs


@pytest.mark.whole
def test_a_step_of_gpt2_takes_half_the_memory_and_waits_for_nothing():
    """Twelve layers, which three models take six seconds to count."""
    kernels = {make: [total(make, 12, half) for half in (None, HALF)] for make in (ours, PlainGPT, TheirGPT)}
    assert (kernels[ours], kernels[PlainGPT]) == ([424, 719], [366, 636])
    assert min(kernels[TheirGPT]) > 424
    assert 2 * step(ours, 12, HALF).peak <= step(PlainGPT, 12, HALF).peak
    assert step(ours, 12, HALF).peak < 7.5 * 2**30
    assert step(ours, 12, HALF).bytes < step(PlainGPT, 12, HALF).bytes < step(TheirGPT, 12, HALF).bytes


def test_the_host_waits_for_no_value_in_a_step():
    assert step(ours, 1).waits == 0


def test_the_host_waits_five_times_in_a_step_of_the_trainer():
    """For the number of labels, twice whether the gradient is finite, and for loss and norm, which it reports."""
    with fake_gpu():
        model = Decoder(gpt(vocab_size=65, d_model=16, num_layers=1, num_heads=2, max_length=8))
        ids = torch.empty(2, 8, dtype=torch.int64)
        trainer = Trainer(model, iter([PackedRows(ids, ids, ids)]), TrainingConfig(steps=30))
        with Launches(model.parameters()) as found:
            trainer.step()
    assert found.waits == 5


def test_a_value_that_the_host_asks_for_is_counted():
    with fake_gpu():
        x = torch.empty(5)
        with Launches([x]) as found:
            assert x.sum().item() == 1
            assert x.any()
            assert x.argmax().item() == 1
    assert (found.waits, found.kernels) == (3, {"sum": 1, "any": 1, "argmax": 1})


def test_a_value_that_only_gpus_are_asked_for_is_counted():
    with fake_gpu():
        x = torch.empty(5)
        with Launches([x]) as found:
            y = x if x.is_cpu else x * x.max().item()
    assert (found.waits, y.shape) == (1, (5,))


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
def test_adamw_is_launched_once_for_all_parameters(dtype):
    launched = {}
    with fake_gpu():
        for name, make in (("ours", adamw), ("theirs", partial(torch.optim.AdamW, fused=True))):
            params = [torch.empty(size, dtype=dtype, requires_grad=True) for size in ((8, 4), (4,), (16, 8), (3,))]
            for p in params:
                p.grad = torch.empty_like(p)
            optimizer = make(params)
            optimizer.step()
            with Launches(params) as found:
                optimizer.step()
            launched[name] = found.kernels
            assert found.waits == 0
    copies = {} if dtype is torch.float32 else {"_foreach_copy_": 3}  # parameters and gradients are widened
    assert launched["ours"] == {"full": 1, "_fused_adamw_": 1, **copies}
    assert launched["theirs"] == {"_foreach_add_": 1, "_fused_adamw_": 1}


def test_clipping_launches_one_kernel_for_each_parameter():
    launched = []
    with fake_gpu():
        for many in (4, 8):
            params = [torch.empty(size, 8, requires_grad=True) for size in range(1, many + 1)]
            for p in params:
                p.grad = torch.empty_like(p)
            with Launches(params) as found:
                clip_gradients(params, 1.0)
            launched.append(found.kernels.total())
    assert launched[1] - launched[0] == 4
    assert launched[0] <= 42


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
@pytest.mark.parametrize("max_norm", [1e-3, 1e9])
def test_gradients_are_clipped_by_kernels_for_all_as_one_at_a_time(max_norm, dtype):
    grads = [torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype) for shape in ((5, 7), (0,), (3,))]
    clipped, norm = impl.clip_grad_norm(grads, max_norm)
    with AsOnGPU():
        likewise, again = impl.clip_grad_norm(grads, max_norm)
    assert torch.equal(norm, again)
    assert all(torch.equal(x, y) for x, y in zip(clipped, likewise, strict=True))


def floats(*shape):
    return torch.empty(shape, requires_grad=True)


def residual_then_norm(x, fx, weight):
    x = impl.residual(x, fx)
    return x, impl.rms_norm(x, weight)


N, D, HIDDEN, V = 2048, 768, 2048, 50_304
OPERATORS = {
    "rms_norm": lambda: (impl.rms_norm, floats(N, D), floats(D)),
    "layer_norm": lambda: (impl.layer_norm, floats(N, D), floats(D), floats(D)),
    "swiglu": lambda: (lambda gate, up: F.silu(gate) * up, floats(N, HIDDEN), floats(N, HIDDEN)),
    "rope": lambda: (lambda x: rotate(x, *torch.empty(2, N, 32), "half"), floats(2, 12, N, 64)),
    "residual and rms_norm": lambda: (residual_then_norm, floats(N, D), floats(N, D), floats(D)),
    "cross_entropy": lambda: (partial(impl.cross_entropy, target=torch.empty(N, dtype=torch.int64)), floats(N, V)),
    "linear_cross_entropy": lambda: (
        partial(linear_cross_entropy, target=torch.empty(16_384, dtype=torch.int64)), floats(16_384, D), floats(V, D),
    ),
}  # fmt: skip
ROWS = json.loads(Path(__file__).with_name("kernels_of_operators.json").read_text(encoding="utf-8"))["operators"]
MORE = {"rms_norm", "swiglu", "rope", "residual and rms_norm", "cross_entropy"}
"""Operators for which PyTorch has several kernels where Liger has one of its own."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["operator"])
def test_operators_launch_what_the_table_says(row):
    with fake_gpu():
        call, *given = OPERATORS[row["operator"]]()
        with Launches(given) as found:
            results = call(*given)
            forward = found.kernels.total()
            results = results if isinstance(results, tuple) else (results,)
            torch.autograd.grad(results, given, [torch.empty_like(y) for y in results])
    assert [forward, found.kernels.total() - forward] == row["ours"]
    assert found.waits == 0
    assert (sum(row["ours"]) > sum(row["liger"])) == (row["operator"] in MORE)


def test_the_table_has_all_operators():
    assert [row["operator"] for row in ROWS] == list(OPERATORS)
