"""The Triton kernels compute the formula and its gradients, at every edge of a tile, and touch nothing beside it."""

import numpy as np
import pytest
import torch

from tests.attention_calls import N_Q, OPTIONS, tensors
from tests.attention_oracle import oracle
from tests.derived_bounds import U, judge, random
from tests.noise_floor import judge_alike, spread
from tests.triton_kernels import DEVICE, T, by_16, kernels, moved, on_device, u_factor
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.flash.triton import attention_in_tiles
from veriformer.impl.models import Decoder, llama

pytestmark = kernels

FLOAT32, BFLOAT16, FLOAT16 = torch.float32, torch.bfloat16, torch.float16
HALVES = [("window 7", BFLOAT16), ("together", BFLOAT16), ("softcap", FLOAT16), ("mask of everything", FLOAT16)]
CASES = [(name, FLOAT32) for name in OPTIONS] + HALVES


def judged(got, want):
    assert got.keys() == want.keys()
    for name, (exact, bound) in want.items():
        judge(got[name], exact, bound)


def small(n_q=N_Q, n_k=N_Q, d_k=5, d_v=4, heads=2, dtype=FLOAT32):
    """Return q, k, v and a cotangent of one batch element and one key head."""
    shapes = ((heads, n_q, d_k), (1, n_k, d_k), (1, n_k, d_v), (heads, n_q, d_v))
    return [random(1, *shape, seed=seed).to(dtype) for seed, shape in enumerate(shapes)]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_values_and_gradients(name, dtype):
    q, k, v, g = tensors(dtype)
    options = OPTIONS[name]
    got = on_device(by_16, q, k, v, g, **options)
    assert all(x.dtype == (options["bias"].dtype if key == "bias" else dtype) for key, x in got.items())
    judged(got, oracle(q, k, v, g, **options, u_factor=u_factor(dtype)))


LENGTHS = [(1, 1), (T - 1, T), (T, T - 1), (T, T), (T + 1, T), (T, T + 1), (2 * T + 1, 2 * T + 1), (1, 2 * T + 1),
           (2 * T + 1, T - 1), (T + 1, 3 * T)]  # fmt: skip


@pytest.mark.parametrize(("n_q", "n_k"), LENGTHS)
@pytest.mark.parametrize(
    "options",
    [{}, {"is_causal": True}, {"is_causal": True, "window": T}, {"is_causal": True, "window": T + 3}],
    ids=str,
)
def test_lengths(n_q, n_k, options):
    q, k, v, g = small(n_q, n_k, heads=1)
    judged(on_device(by_16, q, k, v, g, **options), oracle(q, k, v, g, **options))


@pytest.mark.parametrize("window", [1, T - 1, T, T + 1, 2 * T, 2 * T + 1])
def test_windows(window):
    q, k, v, g = small(2 * T + 3, 2 * T + 5, heads=1)
    options = {"is_causal": True, "window": window}
    judged(on_device(by_16, q, k, v, g, **options), oracle(q, k, v, g, **options))


@pytest.mark.parametrize(("d_k", "d_v"), [(1, 1), (16, 16), (17, 3), (33, 16), (2, 40)])
def test_widths(d_k, d_v):
    q, k, v, g = small(5, 7, d_k, d_v)
    judged(on_device(by_16, q, k, v, g), oracle(q, k, v, g))


@pytest.mark.parametrize("softcap", [1e-3, 0.5, 30.0, 1e4])
def test_soft_caps_far_from_the_scores_and_near(softcap):
    q, k, v, g = small(9, 11)
    judged(on_device(by_16, q, k, v, g, softcap=softcap), oracle(q, k, v, g, softcap=softcap))


def test_the_tangent_is_good_to_eight_units_in_the_last_place_at_every_magnitude():
    from tests.triton_tanh import tanh_of

    x = torch.cat([torch.logspace(-30, 4, 509), torch.tensor([0.0, 0.625, torch.inf])])
    x = torch.cat([x, -x]).to(DEVICE)
    y = torch.empty_like(x)
    with np.errstate(over="ignore"):  # the interpreter's, where the exponential of the other branch overflows
        tanh_of[(1,)](x, y, N=x.numel())
    exact = x.double().tanh()
    judge(y.cpu(), exact.cpu(), 8 * U[FLOAT32] * exact.abs().cpu() + torch.finfo(FLOAT32).tiny)


def test_large_scores_in_half_precision():
    """Gradients of scores leave the range of float16 here, results do not."""
    q, k, v, g = small(9, 9, dtype=torch.float16)
    q, v, g = q * 300, v * 500, g * 100
    want = oracle(q, k, v, g, scale=1e-3, u_factor=u_factor(torch.float16))
    assert max(float(exact.abs().max()) for exact, _ in want.values()) < 65504
    judged(on_device(by_16, q, k, v, g, scale=1e-3), want)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, 3e38])
@pytest.mark.parametrize(
    "extra", [{}, {"softcap": 1.1}, {"bias": random(2, N_Q, N_Q).float()}], ids=["", "cap", "bias"]
)
def test_hidden_keys_may_hold_anything(poison, extra):
    """Key 9 afflicts queries 9 and 10, which see keys 8 to 10: all else is untouched."""
    q, k, v, g = small()
    options = {"is_causal": True, "window": 2, **extra}
    want = oracle(q, k, v, g, **options)
    k[:, :, 9] = v[:, :, 9] = poison
    got = on_device(by_16, q, k, v, g, **options)
    for name, (exact, bound) in want.items():
        others = [i for i in range(N_Q) if i not in ((8, 9, 10) if name in "kv" else (9, 10))]
        judge(got[name][..., others, :], exact[..., others, :], bound[..., others, :])


@pytest.mark.parametrize("poison", [torch.nan, -torch.inf])
def test_padding_may_hold_anything(poison):
    q, k, v, g = small(T + 1, T + 5)
    real = torch.arange(T + 5) % 5 != 2
    want = oracle(q, k, v, g, mask=real[None])
    k[:, :, ~real] = v[:, :, ~real] = poison
    got = on_device(by_16, q, k, v, g, mask=real[None])
    judged(got, want)
    assert not got["k"][:, :, ~real].any()
    assert not got["v"][:, :, ~real].any()


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16])
@pytest.mark.parametrize("broken", [torch.inf, -torch.inf, torch.nan])
def test_a_broken_value_is_seen_where_it_is_visible(broken, dtype):
    q, k, v, _ = small(dtype=dtype)
    v[:, :, 9, 2] = broken
    o = by_16(*map(moved, (q, k, v)), is_causal=True).cpu()
    assert set(map(str, o[:, :, 9:, 2].flatten().tolist())) == {str(broken)}
    assert o[:, :, :9].isfinite().all()
    assert o[..., :2].isfinite().all()


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16])
def test_a_key_without_weight_spoils_the_gradients_of_queries_that_see_it(dtype):
    q, k, v, g = small(dtype=dtype)
    k[:, :, 3, 2] = -torch.inf  # its weight is 0, and 0 · −∞ is no number
    dq = on_device(by_16, q.abs(), k, v, g, is_causal=True)["q"]
    assert dq[:, :, 3:, 2].isnan().all()
    dq[:, :, 3:, 2] = 0
    assert dq.isfinite().all()


def test_infinities_of_both_signs_make_nan_from_where_both_are_visible():
    q, k, v, _ = small()
    v[:, :, 3, 2], v[:, :, 9, 2] = -torch.inf, torch.inf
    o = by_16(*map(moved, (q, k, v)), is_causal=True).cpu()[..., 2]
    assert (o[:, :, 3:9] == -torch.inf).all()
    assert o[:, :, 9:].isnan().all()
    assert o[:, :, :3].isfinite().all()


@pytest.mark.parametrize("softcap", [None, 2.0])
def test_empty_rows_are_zero(softcap):
    q, k, v, g = small()
    row = torch.zeros(N_Q, N_Q).masked_fill(torch.arange(N_Q)[:, None] == 4, -torch.inf)
    for hiding in ({"mask": row == 0}, {"bias": row}):
        got = on_device(by_16, q, k, v, g, softcap=softcap, **hiding)
        judged(got, oracle(q, k, v, g, softcap=softcap, **hiding))
        assert not got["o"][:, :, 4].any()
        assert not got["q"][:, :, 4].any()
    early = on_device(by_16, *small(T + 5, T - 2), is_causal=True)
    assert not early["o"][:, :, :7].any()
    assert early["o"][:, :, 7:].all()


def embedded(x):
    """Return `x` within a larger tensor of NaN, each axis with strides that no kernel may take for granted."""
    halo = torch.full([n + 3 for n in x.shape], torch.nan, dtype=x.dtype, device=x.device)
    inner = halo[tuple(slice(1, n + 1) for n in x.shape)]
    return inner.copy_(x)


class Guarded:
    """Memory for results in the middle of numbers that nobody may overwrite."""

    def __init__(self):
        self.blocks = []

    def __call__(self, shape, dtype):
        margin, numel = 4096, torch.Size(shape).numel()
        block = torch.full((numel + 2 * margin,), 7.0, dtype=dtype, device=DEVICE)
        block[margin : margin + numel] = torch.nan
        self.blocks.append((block, margin))
        return block[margin : margin + numel].view(shape)

    def intact(self):
        margins = [part for block, margin in self.blocks for part in (block[:margin], block[-margin:])]
        return bool(margins) and all(bool((part == 7).all()) for part in margins)


@pytest.mark.parametrize(("name", "dtype"), [("plain", FLOAT32), ("window 7", BFLOAT16), ("together", FLOAT32)])
def test_nothing_is_read_or_written_beside_the_tensors(name, dtype, monkeypatch):
    from veriformer.impl.attention_backends.flash.function import Kernels

    guarded = Guarded()
    monkeypatch.setattr(Kernels, "_memory", lambda self, shape, dtype: guarded(shape, dtype))
    q, k, v, g = (moved(x) for x in tensors(dtype))
    options = {key: moved(x) for key, x in OPTIONS[name].items()}
    leaves = [embedded(x).requires_grad_() for x in (q, k, v)]
    if "bias" in options:
        leaves.append(embedded(options["bias"]).requires_grad_())
        options["bias"] = leaves[3]
    o = by_16(*leaves[:3], **options)
    got = torch.autograd.grad(o, leaves, embedded(g))
    want = oracle(*(x.cpu() for x in (q, k, v, g)), **OPTIONS[name], u_factor=u_factor(dtype))
    for (exact, bound), x in zip(want.values(), (o.detach(), *got), strict=True):
        judge(x.cpu(), exact, bound)
    assert guarded.intact()


def test_any_strides():
    q, k, v, g = small(T + 1, T + 2, 6, 6)
    want = oracle(q, k, v, g, is_causal=True)
    turned = [moved(x).mT.contiguous().mT for x in (q, k, v)]
    judged(on_device(by_16, *turned, moved(g).mT.contiguous().mT, is_causal=True), want)
    spread = [moved(x).expand(3, -1, -1, -1).requires_grad_() for x in (q, k, v)]
    o = by_16(*spread, is_causal=True)
    o.sum(2, keepdim=True).sum().backward()
    ones = oracle(q, k, v, torch.ones(1, 1, 1, 1).expand_as(g), is_causal=True)
    judge(o[2:].detach().cpu(), *want["o"])
    assert ones["o"][0].shape == o[:1].shape


def test_equal_calls_give_equal_bits():
    q, k, v, g = small(T + 3, 2 * T + 1)
    options = {"is_causal": True, "bias": random(1, 1, 1)}
    first, again = (on_device(by_16, q, k, v, g, **options) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_tiles_of_other_sizes():
    q, k, v, g = small(37, 41)
    options = {"is_causal": True, "window": 20}
    for side in (32, 64):
        judged(on_device(attention_in_tiles(side), q, k, v, g, **options), oracle(q, k, v, g, **options))


def test_what_has_no_gradient_costs_none(monkeypatch):
    from veriformer.impl.attention_backends.flash import function

    ran = []
    run = function.Kernels._run
    monkeypatch.setattr(
        function.Kernels,
        "_run",
        lambda self, kernel, *a, **b: (ran.append(kernel.__name__), run(self, kernel, *a, **b)),
    )
    q, k, v, g = (moved(x) for x in small(3, 3))
    by_16(q.requires_grad_(), k, v).backward(g)
    assert ran == ["forward", "row_products", "query_gradients"]


@pytest.mark.parametrize("what", ["float64", "wide", "no key", "no query", "meta"])
def test_the_formula_computes_what_the_kernels_cannot_express(what):
    n_q, n_k = {"no key": (3, 0), "no query": (0, 3)}.get(what, (3, 5))
    q, k, v, _ = small(
        n_q, n_k, d_k=257 if what == "wide" else 5, dtype=torch.float64 if what == "float64" else FLOAT32
    )
    device = "meta" if what == "meta" else DEVICE
    q, k, v = (x.to(device) for x in (q, k, v))
    got, want = (BACKENDS[name](q, k, v, is_causal=True) for name in ("triton", "reference"))
    assert (got.shape, got.dtype, got.device) == (want.shape, want.dtype, want.device)
    assert what == "meta" or torch.equal(got, want)


TOGETHER = {"is_causal": True, "window": 4, "softcap": 1.5, "dropout_p": 0.3, "training": True}


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by the compiler
@pytest.mark.parametrize("options", [{}, TOGETHER], ids=["plain", "together"])
def test_a_compiler_sees_one_graph(options):
    torch.compiler.reset()
    *tensors, g = (moved(x) for x in small(5, 7))
    leaves = [x.requires_grad_() for x in (*tensors, torch.randn(2, 5, 7, device=DEVICE))]

    def function(q, k, v, bias):
        return by_16(q, k, v, bias=bias, **options)

    results = []
    for run in (function, torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=False)):
        torch.manual_seed(0)
        o = run(*leaves)
        results.append((o, *torch.autograd.grad(o, leaves, g)))
    assert all(x.any() for x in results[0])
    assert all(torch.equal(eager, compiled) for eager, compiled in zip(*results, strict=True))


@pytest.mark.parametrize("wanted", [(True, True, True), (False, True, False)], ids=["all", "of keys"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_passes_tell_a_compiler_what_they_return(wanted, dtype):
    from veriformer.impl.attention_backends.flash.differentiable import _closed_backward, _closed_forward

    q, k, v, g = (moved(x).to(dtype) for x in small(5, 7))
    inputs, settings = (q, k, v, torch.zeros(1, 2, 5, 7, device=DEVICE), None, None), (True, 4, 0.5, None, 0.0, 16)
    look = ("test_schema", "test_faketensor")
    torch.library.opcheck(_closed_forward, (*inputs, *settings), test_utils=look)
    results = _closed_forward(*inputs, *settings)
    torch.library.opcheck(_closed_backward, (*inputs, *results, g, *wanted, *settings), test_utils=look)


def test_a_model_that_attends_by_these_kernels():
    sizes = {"vocab_size": 37, "d_model": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2}
    config = llama(**sizes, max_length=32, window=9, init_std=0.3)
    torch.manual_seed(0)
    model, other = Decoder(config).eval(), Decoder(config.replace(attention="triton")).eval().to(DEVICE)
    other.load_state_dict(model.state_dict())
    ids = torch.randint(0, 37, (2, 21))
    mask = torch.ones_like(ids)
    mask[0, :5] = 0

    @torch.enable_grad()
    def logits_and_slope(m, device="cpu"):
        weight = next(p for name, p in m.named_parameters() if "qkv" in name)
        logits = m(ids.to(device), mask.to(device)).logits.cpu()[mask.bool()]
        return logits.detach(), torch.autograd.grad(logits.square().sum(), weight)[0].cpu()

    for i in range(2):
        sigma = spread(model, lambda i=i: logits_and_slope(model)[i])
        judge_alike(logits_and_slope(other, DEVICE)[i], logits_and_slope(model)[i], sigma)
