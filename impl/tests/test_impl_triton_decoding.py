"""Attention over a cache in pieces: the formula over the keys that a number on the device counts, and nothing else."""

import pytest
import torch

from tests.attention_calls import coin
from tests.attention_oracle import oracle
from tests.derived_bounds import judge, random
from tests.noise_floor import judge_alike, spread
from tests.triton_kernels import DEVICE, kernels, moved, u_factor
from veriformer.impl.attention_backends.flash.triton import attend_to_cache
from veriformer.impl.generation.generate import prefill
from veriformer.impl.generation.static import StaticDecoding
from veriformer.impl.models import Decoder, llama

pytestmark = kernels

B, H, G, CAPACITY, D_K, D_V = 2, 6, 3, 83, 5, 4
FLOAT32, BFLOAT16, FLOAT16 = torch.float32, torch.bfloat16, torch.float16


def cache(dtype=FLOAT32, heads=H, groups=G, d_k=D_K, d_v=D_V):
    """Return queries, keys and values of a whole cache, in the dtype."""
    shapes = ((heads, 1, d_k), (groups, CAPACITY, d_k), (groups, CAPACITY, d_v))
    return [random(B, *shape, seed=seed).to(dtype) for seed, shape in enumerate(shapes)]


def attended(q, k, v, length, **options):
    """Run the kernels on a cache that holds NaN after its length."""
    k, v = (x.clone().index_fill_(2, torch.arange(length, CAPACITY), torch.nan) for x in (k, v))
    options = {"scale": q.shape[3] ** -0.5} | {name: moved(x) for name, x in options.items()}
    return attend_to_cache(*map(moved, (q, k, v, torch.tensor([length]))), **options).cpu()


def judged(q, k, v, length, *, mask=None, **options):
    got = attended(q, k, v, length, mask=mask, **options)
    options.pop("pieces", None)
    hiding = {"is_causal": True, "window": options.pop("window", None)}
    seen = None if mask is None else mask[..., :length]
    want = oracle(
        q, k[:, :, :length], v[:, :, :length], torch.zeros_like(got), mask=seen, **hiding, **options,
        u_factor=u_factor(q.dtype),
    )  # fmt: skip
    assert got.dtype == q.dtype
    judge(got, *want["o"])


OPTIONS = {
    "plain": {},
    "soft-cap": {"softcap": 0.7, "scale": -0.3},
    "window": {"window": 33},
    "padding": {"mask": coin(B, 1, 1, CAPACITY)},
    "padding of all": {"mask": (torch.arange(CAPACITY) > 40)[None, None, None]},
    "together": {"window": 50, "softcap": 1.3, "mask": coin(B, 1, 1, CAPACITY)},
}


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("name", OPTIONS)
def test_values(name, pieces):
    judged(*cache(), 71, pieces=pieces, **OPTIONS[name])


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16])
def test_halves(dtype):
    judged(*cache(dtype), 71, **OPTIONS["together"])


@pytest.mark.parametrize("length", [1, 16, 17, 32, 33, 65, CAPACITY])
@pytest.mark.parametrize("window", [None, 1, 17])
def test_lengths_at_the_edges_of_tiles_and_pieces(length, window):
    judged(*cache(heads=2, groups=1), length, window=window, pieces=2)


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (4, 4), (16, 1), (20, 1), (64, 1)])
def test_heads_of_a_group_are_rows_of_one_tile(heads, groups):
    judged(*cache(heads=heads, groups=groups), 40)


@pytest.mark.parametrize(("d_k", "d_v"), [(1, 1), (16, 16), (17, 3), (33, 40)])
def test_widths(d_k, d_v):
    judged(*cache(d_k=d_k, d_v=d_v), 40)


def test_where_no_key_is_visible_the_output_is_zero():
    assert not attended(*cache(), 40, mask=torch.zeros(1, 1, 1, CAPACITY, dtype=torch.bool)).any()


def test_equal_calls_give_equal_bits_and_padding_at_the_front_changes_none():
    q, k, v = cache()
    first, again = (attended(q, k, v, 70, pieces=4) for _ in range(2))
    assert torch.equal(first, again)
    real = (torch.arange(CAPACITY) >= 0)[None, None, None]
    assert torch.equal(first, attended(q, k, v, 70, pieces=4, mask=real))


def test_one_launch_serves_every_length(monkeypatch):
    """Only the number on the device changes, so that a captured graph may be replayed."""
    from veriformer.impl.attention_backends.flash.decoding import CacheKernels

    launches, run = [], CacheKernels._run

    def note(self, kernel, grid, blocks, **arguments):
        launches.append((kernel.__name__, grid, blocks, {k: x for k, x in arguments.items() if not torch.is_tensor(x)}))
        run(self, kernel, grid, blocks, **arguments)

    monkeypatch.setattr(CacheKernels, "_run", note)
    q, k, v = map(moved, cache())
    length = moved(torch.tensor([1]))
    for n in (1, 40, CAPACITY):
        attend_to_cache(q, k, v, length.fill_(n), scale=0.5, window=20)
    assert [name for name, *_ in launches] == ["attend_pieces", "join_pieces"] * 3
    assert launches[:2] == launches[2:4] == launches[4:]


def test_an_operator_that_a_compiler_need_not_look_into():
    from veriformer.impl.attention_backends.flash.decoding import _closed_decode

    q, k, v = map(moved, cache())
    length = moved(torch.tensor([9]))
    settings = (None, 4, 0.5, None, 2)
    torch.library.opcheck(_closed_decode, (q, k, v, length, *settings), test_utils=("test_schema", "test_faketensor"))

    def call(q, k, v, length):
        return attend_to_cache(q, k, v, length, window=4, scale=0.5, pieces=2)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=False)
    with torch.no_grad():
        assert torch.equal(compiled(q, k, v, length), call(q, k, v, length))


def test_pieces_keep_every_processor_busy_and_are_a_power_of_two():
    from veriformer.impl.attention_backends.flash.decoding import MOST_PIECES, piece_count

    assert piece_count(12, 10**6, 64, 132) == 32
    assert piece_count(1, 10**6, 64, 132) == MOST_PIECES
    assert piece_count(768, 10**6, 64, 132) == 1
    assert piece_count(1, 200, 64, 132) == 4


@torch.inference_mode()
def test_a_step_of_a_model_attends_by_these_kernels():
    sizes = {"vocab_size": 37, "d_model": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2}
    config = llama(**sizes, max_length=32, window=5, softcap=3.0, init_std=0.3)
    torch.manual_seed(0)
    model, other = Decoder(config).eval(), Decoder(config.replace(attention="triton")).eval().to(DEVICE)
    other.load_state_dict(model.state_dict())
    ids, start = torch.randint(0, 37, (2, 9)), 6
    real = torch.ones_like(ids)
    real[0, :4] = 0

    def ordinary():
        kv_cache = model.make_kv_cache(2, 9)
        prefill(model, ids[:, :start], real, kv_cache)
        return torch.stack([prefill(model, ids[:, i : i + 1], real, kv_cache) for i in range(start, 9)])

    decoding = StaticDecoding(other, 2, 20, padded=True)
    prefill(other, moved(ids[:, :start]), moved(real), decoding.kv_cache)
    decoding._begin(moved(ids), start + 1, moved(real))
    got = torch.stack([(decoding.place.fill_(i), decoding.read().cpu())[1] for i in range(start, 9)])
    judge_alike(got, ordinary(), spread(model, ordinary))
    assert decoding._in_pieces
