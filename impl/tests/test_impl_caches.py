"""Caches: what the contract leaves open, and what must not be seen from outside."""

import copy

import pytest
import torch

from veriformer.impl import attention, cached_attention, kv_cache
from veriformer.impl.cache.caches import DynamicCache, SlidingWindowCache, StaticCache


def rows(n, *, batch=2, groups=3, d=4, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(2, batch, groups, n, d, generator=generator).to(dtype))


def test_options_choose_the_cache():
    assert type(kv_cache(1, 1, 4, 2)) is StaticCache
    assert type(kv_cache(1, 1, 4, 2, window=3)) is SlidingWindowCache


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_a_growing_cache_shows_what_a_static_one_does_without_a_limit(quantization):
    growing = DynamicCache(2, 3, 4, quantization=quantization)
    static = kv_cache(2, 3, 100, 4, quantization=quantization)
    for i, n in enumerate((1, 20, 1, 40, 3)):
        new = rows(n, seed=i)
        for a, b in zip(growing.update(*new), static.update(*new), strict=True):
            assert torch.equal(a, b)
    assert growing.length == static.length == 65


def test_a_static_cache_neither_allocates_nor_copies_after_its_first_update():
    cache = kv_cache(2, 3, 10, 4)
    k, _ = cache.update(*rows(3))
    place = k.data_ptr()
    for _ in range(7):
        assert cache.update(*rows(1))[0].data_ptr() == place
    cache.reorder(torch.tensor([1, 1]))
    cache.reset()
    assert cache.update(*rows(1))[0].data_ptr() == place


def test_the_memory_of_a_window_does_not_grow_with_the_text():
    cache = kv_cache(1, 1, 10_000, 2, window=4)
    for i in range(50):
        cache.update(*rows(1, batch=1, groups=1, d=2, seed=i))
    cache.update(*rows(30, batch=1, groups=1, d=2))
    assert cache.length == 80
    assert cache._keys.parts[0].shape[2] == 8


def test_a_byte_per_entry_and_a_number_per_row_are_stored():
    cache = kv_cache(2, 3, 5, 4, quantization="int8", dtype=torch.bfloat16)
    cache.update(*rows(2, dtype=torch.bfloat16))
    codes, absmax = cache._keys.parts
    assert (codes.dtype, tuple(codes.shape)) == (torch.int8, (2, 3, 5, 4))
    assert tuple(absmax.shape) == (2, 3, 5, 1)


@pytest.mark.parametrize("size", [torch.finfo(torch.float32).max, 1e-44, 0.0])
def test_bytes_hold_the_largest_and_the_smallest_rows(size):
    x = torch.tensor([1.0, -0.5, 0.25, 0.0]) * size
    k, _ = kv_cache(1, 1, 1, 4, quantization="int8").update(x[None, None, None], x[None, None, None])
    assert ((k.double() - x.double()).abs() <= float(x.double().abs().max()) / 254 + 1.5e-45).all()


def test_gradients_reach_the_new_rows_and_end_there():
    cache = kv_cache(2, 3, 10, 4)
    first = [x.requires_grad_() for x in rows(2)]
    cache.update(*first)
    second = [x.requires_grad_() for x in rows(3, seed=1)]
    k, v = cache.update(*second)
    (k.sum() + 2 * v.sum()).backward()
    assert [x.grad is None for x in first] == [True, True]
    assert [x.grad.unique().tolist() for x in second] == [[1.0], [2.0]]


def test_backward_of_an_earlier_step_survives_later_ones():
    cache = kv_cache(2, 3, 10, 4)
    q, (k, v) = rows(2, seed=2)[0].requires_grad_(), rows(2)
    out = cached_attention(q, k, v, cache)
    with torch.no_grad():
        cached_attention(q, k, v, cache)
    out.sum().backward()
    expected = q.detach().requires_grad_()
    attention(expected, k, v, is_causal=True).sum().backward()
    assert torch.equal(q.grad, expected.grad)


def test_a_cache_filled_in_inference_mode_can_be_used_after_it_and_copied():
    cache = kv_cache(2, 3, 10, 4, window=3)
    with torch.inference_mode():
        cache.update(*rows(2))
    fork = copy.deepcopy(cache)
    for a, b in zip(cache.update(*rows(1, seed=1)), fork.update(*rows(1, seed=1)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"q": 0}, "q_new"),
        ({"heads": 2}, "q_new"),
        ({"n": 2}, "q_new"),
        ({"scale": "much"}, "scale"),
        ({"softcap": -1.0}, "softcap"),
        ({"cache": None}, "cache"),
    ],
)
def test_a_refused_call_leaves_the_cache_as_it_was(change, name):
    cache = kv_cache(2, 3, 10, 4)
    cache.update(*rows(2))
    k, v = rows(3)
    q = torch.randn(2, change.get("heads", 6), change.get("n", 3), 4)
    options = {key: change[key] for key in ("scale", "softcap") if key in change}
    with pytest.raises((ValueError, TypeError), match=name):
        cached_attention(change.get("q", q), k, v, change.get("cache", cache), **options)
    assert cache.length == 2


def test_a_bad_order_changes_nothing():
    cache = kv_cache(2, 3, 10, 4)
    before = cache.update(*rows(2))[0].clone()
    with pytest.raises(ValueError, match="index"):
        cache.reorder(torch.tensor([0, 2]))
    assert torch.equal(cache._keys.read(0, 2), before)
