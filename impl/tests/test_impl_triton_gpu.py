"""GPU-only tests of the Triton kernels: matrix units, real tiles, large tensors, graphs."""

import pytest
import torch

from tests.attention_calls import OPTIONS, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import judge, random
from tests.triton_kernels import U_FACTOR, on_device
from veriformer.impl import BACKENDS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
]

triton = BACKENDS["triton"]
dtypes = pytest.mark.parametrize("dtype", U_FACTOR, ids=str)


def judged(q, k, v, g, **options):
    got = on_device(triton, q, k, v, g, **options)
    for name, (exact, bound) in oracle(q, k, v, g, **options, u_factor=U_FACTOR[q.dtype]).items():
        judge(got[name], exact, bound)


def square(n_q, n_k, d_k, d_v, dtype, heads=2):
    shapes = ((heads, n_q, d_k), (1, n_k, d_k), (1, n_k, d_v), (heads, n_q, d_v))
    return [random(1, *shape, seed=seed).to(dtype) for seed, shape in enumerate(shapes)]


# Every dtype and option compiles kernels of its own, which takes seconds each: run these with --numprocesses.
FAMILIES = ("plain", "softcap", "causal", "window 7", "mask of everything", "bias of heads", "bias −∞", "together")
CASES = [(name, torch.bfloat16) for name in FAMILIES] + [("together", torch.float16), ("together", torch.float32)]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_every_family_of_options(name, dtype):
    judged(*tensors(dtype), **OPTIONS[name])


@dtypes
@pytest.mark.parametrize("d", [40, 64, 128, 256])
@pytest.mark.parametrize("options", [{}, {"is_causal": True, "window": 150}], ids=str)
def test_every_width_over_many_tiles(d, options, dtype):
    judged(*square(517, 643, d, d, dtype), **options)


@dtypes
def test_values_of_another_width(dtype):
    judged(*square(130, 260, 128, 64, dtype), is_causal=True, softcap=2.0)


@dtypes
@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129, 257])
def test_lengths_at_the_edges_of_tiles(n, dtype):
    for n_k in (n, n + 1, 2 * n + 1):
        judged(*square(n, n_k, 64, 64, dtype, heads=1), is_causal=True)


@dtypes
def test_hidden_keys_may_hold_anything(dtype):
    q, k, v, g = square(300, 300, 64, 64, dtype)
    real = torch.arange(300) % 7 != 3
    want = oracle(q, k, v, g, mask=real[None], u_factor=U_FACTOR[dtype])
    k[:, :, ~real] = v[:, :, ~real] = torch.nan
    got = on_device(triton, q, k, v, g, mask=real[None])
    for name, (exact, bound) in want.items():
        judge(got[name], exact, bound)


def test_equal_calls_give_equal_bits():
    q, k, v, g = square(517, 643, 128, 128, torch.bfloat16)
    options = {"is_causal": True, "dropout_p": 0.2, "training": True}
    results = []
    for _ in range(2):
        generator = torch.Generator("cuda").manual_seed(1)
        results.append(on_device(triton, q, k, v, g, generator=generator, **options))
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])


def test_rows_far_beyond_32_bits():
    """More than 2³¹ entries between the first row and the last."""
    n, heads = 2**16, 2**15 + 2
    q = torch.zeros(1, heads, 1, 64, dtype=torch.bfloat16, device="cuda")
    k = torch.zeros(1, 1, n, 64, dtype=torch.bfloat16, device="cuda")
    spread = torch.zeros(1, n, 1, 2**15 + 64, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
    spread[..., :64] = 1
    spread[:, :, -1, :64] = n
    o = triton(q, k, spread[..., :64])
    expected = (n - 1 + n) / n
    assert abs(float(o[0, -1, 0, 0]) - expected) <= 2.0**-7 * expected
    assert torch.equal(o[:, :1].expand_as(o), o)


def test_no_memory_grows_with_the_square_of_the_length():
    def peak(n):
        q, k, v = (torch.randn(1, 4, n, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        triton(q, k, v, is_causal=True).sum().backward()
        return torch.cuda.max_memory_allocated() - before

    peak(512)
    assert peak(8192) <= 2 * peak(4096)


def test_forward_and_backward_in_a_cuda_graph():
    q, k, v, g = (x.cuda() for x in square(200, 200, 64, 64, torch.bfloat16))
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def run():
        o = triton(*leaves, is_causal=True)
        return (o, *torch.autograd.grad(o, leaves, g))

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        want = run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        got = run()
    graph.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(x, y) for x, y in zip(got, want, strict=True))
