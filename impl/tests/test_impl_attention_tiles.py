"""Tiled attention: which tiles it visits, how much memory it takes, and that it runs without numbers."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from tests.attention_calls import EVERYWHERE, OPTIONS, gradients, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import judge, random
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.tiled import attention_in_tiles

tiled = BACKENDS["tiled"]


class Recorder(TorchDispatchMode):
    """Notes how often each operator runs, and the size of the largest tensor any of them returns."""

    def __init__(self):
        super().__init__()
        self.calls, self.largest = {}, 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = operator.overloadpacket.__name__
        self.calls[name] = self.calls.get(name, 0) + 1
        result = operator(*args, **(kwargs or {}))
        self.largest = max(
            [self.largest, *(x.untyped_storage().nbytes() for x in tree_leaves(result) if torch.is_tensor(x))]
        )
        return result


def meta(*shape):
    return torch.empty(shape, device="meta", requires_grad=True)


@pytest.mark.parametrize(
    ("options", "n_q", "n_k", "visited"),
    [
        ({}, 35, 28, 5 * 4),
        ({"is_causal": True}, 35, 35, 1 + 2 + 3 + 4 + 5),
        ({"is_causal": True}, 14, 35, 4 + 5),
        ({"is_causal": True}, 35, 14, 1 + 2),
        ({"is_causal": True, "window": 7}, 35, 35, 1 + 2 * 4),
        ({"is_causal": True, "window": 1}, 35, 35, 5),
        ({"is_causal": True, "window": 9}, 35, 35, 1 + 2 + 3 * 3),
    ],
)
def test_tiles_that_causality_or_the_window_hides_are_skipped(options, n_q, n_k, visited):
    attention = attention_in_tiles(7)
    q, k, v = meta(1, 2, n_q, 4), meta(1, 2, n_k, 4), meta(1, 2, n_k, 4)
    tile = 2 * 7 * 7 * 4 * 2  # operations of one product of one tile: heads, queries, keys, width, times and plus
    with FlopCounterMode(display=False) as forward:
        o = attention(q, k, v, **options)
    with FlopCounterMode(display=False) as backward:
        o.sum().backward()
    assert forward.get_total_flops() == 2 * visited * tile
    assert backward.get_total_flops() == 5 * visited * tile


def test_tiles_that_a_mask_hides_are_skipped():
    q, k, v, g = (random(1, 2, 21, 4, seed=seed) for seed in range(4))
    documents = torch.arange(21) // 7
    mask = documents[:, None] == documents
    with FlopCounterMode(display=False) as counter:
        got = gradients(attention_in_tiles(7), q, k, v, g, mask=mask)
    assert counter.get_total_flops() == 7 * 3 * (2 * 7 * 7 * 4 * 2)
    for name, (exact, bound) in oracle(q, k, v, g, mask=mask).items():
        judge(got[name], exact, bound)


@pytest.mark.whole
@pytest.mark.parametrize("training", [False, True], ids=["", "dropout"])
@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"softcap": 2.0, "is_causal": True, "window": 300}], ids=str
)
def test_no_tensor_grows_faster_than_the_length(options, training):
    def largest(n):
        q, k, v = (meta(1, 4, n, 64) for _ in range(3))
        with Recorder() as recorder:
            tiled(q, k, v, dropout_p=0.1, training=training, **options).sum().backward()
        return recorder.largest

    assert largest(2048) == 2 * largest(1024) == 4 * 2048 * 64 * 4


@pytest.mark.parametrize("attention", EVERYWHERE.values(), ids=EVERYWHERE)
@pytest.mark.parametrize(
    "options", [*OPTIONS.values(), {"dropout_p": 0.2, "training": True}], ids=[*OPTIONS, "dropout"]
)
def test_shapes_without_numbers(attention, options):
    q, k, v, g = tensors(torch.bfloat16)

    def on_meta(x):
        return x.to("meta") if torch.is_tensor(x) else x

    got = gradients(attention, *(on_meta(x) for x in (q, k, v, g)), **{k: on_meta(x) for k, x in options.items()})
    assert {x.device.type for x in got.values()} == {"meta"}
    assert (got["o"].shape, got["o"].dtype) == (g.shape, g.dtype)
    for name, x in {"q": q, "k": k, "v": v, **({"bias": options["bias"]} if "bias" in options else {})}.items():
        assert (got[name].shape, got[name].dtype) == (x.shape, x.dtype)


@pytest.mark.parametrize("attention", EVERYWHERE.values(), ids=EVERYWHERE)
@pytest.mark.parametrize(
    "options", [*OPTIONS.values(), {"dropout_p": 0.2, "training": True}], ids=[*OPTIONS, "dropout"]
)
def test_fake_tensors(attention, options):
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(x) for x in tensors()]
        got = gradients(
            attention, *fake, **{k: mode.from_tensor(x) if torch.is_tensor(x) else x for k, x in options.items()}
        )
    assert got["o"].shape == (2, 6, 13, 4)
    assert got["k"].shape == (2, 3, 19, 5)


def test_keys_and_values_of_a_group_are_not_repeated():
    def largest(G):
        q, k, v = meta(1, 8, 1024, 128), meta(1, G, 1024, 128), meta(1, G, 1024, 128)
        with Recorder() as recorder:
            tiled(q, k, v).sum().backward()
        return recorder.calls["bmm"], recorder.largest

    assert largest(1)[0] == largest(8)[0]
    assert largest(1)[1] == 8 * 1024 * 128 * 4


def test_a_tile_has_a_side():
    for side, error in ((0, ValueError), (-1, ValueError), (2.0, TypeError), (None, TypeError)):
        with pytest.raises(error, match="side: expected"):
            attention_in_tiles(side)
