"""Each fault of heads, linear attention, caches and the block shows on its trigger, and hides off it.

The judge is the base that the fault was put into: the two differ by far more than rounding, or not at all.
"""

import pytest
import torch

from veriformer.verify import mutants

BASES = {"kv_cache": "caches-base", "cached_attention": "caches-base"}


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def heads(num_heads, num_kv_heads, n=3, **options):
    d = 4
    weights = draw(d, 2 * num_heads), draw(d, 2 * num_kv_heads), draw(d, 2 * num_kv_heads), draw(2 * num_heads, d)
    return lambda target: target.multi_head_attention(
        draw(2, n, d, seed=1), *weights, num_heads=num_heads, num_kv_heads=num_kv_heads, **options
    )


def linear(width, gradient=False):
    def call(target):
        q, k, v = (x.requires_grad_() for x in draw(3, 1, 2, 4, width))
        out = target.linear_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(out.square().sum(), k)[0] if gradient else out

    return call


def block(norm, **silent):
    shapes = {"w_q": (4, 4), "w_k": (4, 4), "w_v": (4, 4), "w_o": (4, 4), "w1": (4, 5), "b1": (5,), "w2": (5, 4)}
    shapes |= dict.fromkeys(("b2", "norm1_weight", "norm1_bias", "norm2_weight", "norm2_bias"), (4,))
    params = {name: draw(*shape, seed=i) * (name not in silent) for i, (name, shape) in enumerate(shapes.items())}
    return lambda target: target.transformer_block(draw(1, 3, 4), params, num_heads=2, norm=norm)


def bytes_of(x):
    def call(target):
        cache = target.kv_cache(*x.shape[:2], 8, x.shape[3], dtype=x.dtype, quantization="int8")
        return torch.stack(cache.update(x, x))

    return call


def decoded(*sizes, window=None, **options):
    def call(target):
        q, k, v = draw(3, 1, 2, sum(sizes), 3)
        cache = target.kv_cache(1, 2, sum(sizes), 3, dtype=q.dtype, window=window)
        parts = zip(*(x.split(sizes, 2) for x in (q, k, v)), strict=True)
        return torch.cat([target.cached_attention(*part, cache, **options) for part in parts], 2)

    return call


PADDED = {"attention_mask": torch.tensor([[True, True, False], [True, False, False]])}

# identifier: (on the trigger, off the trigger or None where there is nowhere to hide)
CASES = {
    "ATT-01": (heads(2, 2), heads(1, 1)),
    "ATT-05": (heads(2, 2), heads(2, 2, n=1)),
    "GQA-01": (heads(4, 2), heads(4, 1)),
    "MASK-08": (heads(2, 2, context=draw(2, 3, 4), **PADDED), heads(2, 2, **PADDED)),
    "LIN-02": (linear(2), None),
    "LIN-03": (linear(2, gradient=True), linear(2)),
    "BLK-01": (block("pre"), block("post")),
    "BLK-02": (block("post"), block("pre")),
    "KVQ-02": (bytes_of(draw(1, 2, 2, 3)), bytes_of(127.0 - 127.0 * torch.eye(4).double()[None, None])),
    "KVQ-05": (bytes_of(draw(1, 2, 2, 3)), bytes_of(draw(1, 2, 2, 4))),
    "MASK-01": (decoded(2, 2), decoded(4)),
    "KV-04": (decoded(3, 2, window=2), decoded(3, 2)),
    "KV-06": (decoded(4, 1), decoded(3, 1)),
}


def apart(mutant, call, operation):
    base = mutants.build("variant", BASES.get(operation, "heads-base"))
    difference = (call(mutants.build("mutant", mutant)) - call(base)).detach().abs().max()
    return float(difference)


def operation_of(mutant):
    known = {m.identifier: m for m in mutants.MUTANTS}
    ours = ("multi_head_attention", "linear_attention", "cached_attention", "kv_cache", "transformer_block")
    return next(name for name in ours if name in known[mutant].operations)


@pytest.mark.parametrize("identifier", CASES)
def test_a_fault_shows_on_its_trigger_and_hides_off_it(identifier):
    on, off = CASES[identifier]
    assert apart(identifier, on, operation_of(identifier)) > 2.0**-12
    if off is not None:
        assert apart(identifier, off, operation_of(identifier)) < 2.0**-40


def test_every_fault_of_these_operations_is_tried():
    ours = {"multi_head_attention", "linear_attention", "kv_cache", "cached_attention", "transformer_block"}
    assert {m.identifier for m in mutants.MUTANTS if ours & set(m.operations)} == set(CASES)
