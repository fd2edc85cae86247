"""Kernels that a training step launches and bytes that they move, counted without a device beside a plain GPT's."""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from veriformer.bench.peers.catalogue import Sizes
from veriformer.bench.peers.models import PlainGPT
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.families import gpt
from veriformer.impl.training.objective import Objective

NOTHING = {"_unsafe_view", "detach", "empty", "empty_like", "new_empty"}
"""Operators beside views that launch no kernel."""


class Count(TorchDispatchMode):
    """Operators that launch a kernel, and the bytes of their arguments and results."""

    def __init__(self):
        super().__init__()
        self.kernels, self.bytes = Counter(), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if not (function.is_view or name in NOTHING):
            self.kernels[name] += 1
            tensors = [x for x in tree_leaves((args, kwargs, result)) if isinstance(x, torch.Tensor)]
            self.bytes += sum(x.numel() * x.element_size() for x in tensors)
        return result


def ours(sizes):
    config = gpt(
        vocab_size=sizes.vocabulary,
        d_model=sizes.width,
        num_layers=sizes.layers,
        num_heads=sizes.heads,
        max_length=sizes.length,
    )
    return Objective(Decoder(config.replace(attention="sdpa")))


def counted(make, layers):
    """Return the kernels of a step of GPT-2 with so many layers, but for the optimizer's, and the bytes."""
    sizes = Sizes(layers=layers, width=768, heads=12, length=1024, batch=16, vocabulary=50_304)
    with torch.device("meta"):
        model, ids = make(sizes), torch.empty(sizes.batch, sizes.length, dtype=torch.int64)
    with Count() as count:
        model(ids, ids).backward()
    return count.kernels.total(), count.bytes


@pytest.fixture(scope="module")
def of_both():
    return {make: [counted(make, layers) for layers in (1, 2, 12)] for make in (ours, PlainGPT)}


def test_a_layer_launches_no_more_than_a_plain_one(of_both):
    (one, two, _), (plain_one, plain_two, _) = ([kernels for kernels, _ in of_both[make]] for make in (ours, PlainGPT))
    assert two - one <= plain_two - plain_one
    assert one - plain_one <= 60  # the loss, a part of the tokens at a time


def test_a_step_moves_fewer_bytes(of_both):
    for (_, moved), (_, by_plain) in zip(of_both[ours], of_both[PlainGPT], strict=True):
        assert moved < by_plain
