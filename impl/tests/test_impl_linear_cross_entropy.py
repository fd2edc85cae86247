"""The chunked loss: that of the head and the cross-entropy together, in any chunks, with less memory."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from tests.derived_bounds import DTYPES, U, after_rounding, dtypes, gamma, judge, random, working_roundoff
from veriformer.impl import cross_entropy
from veriformer.impl.losses.linear_cross_entropy import CHUNK, _chunk, linear_cross_entropy

N, D, V = 13, 5, 11
H, W, BIAS = random(N, D), random(V, D), random(V)
Y = torch.randint(0, V, (N,), generator=torch.Generator().manual_seed(0))
Y[[2, 7]] = -100


def gradients(function, *leaves):
    leaves = [x.detach().clone().requires_grad_() for x in leaves]
    loss = function(*leaves)
    return [loss.detach(), *torch.autograd.grad(loss, leaves)]


def bounds(h, w, b, u):
    """Return how far the loss and its gradients may be from the exact ones, by what enters every sum."""
    z, δ = h @ w.mT + b, gamma(D + 2, u) * (h.abs() @ w.abs().mT + b.abs())
    δ_p = (2 * δ.amax(-1, keepdim=True) + gamma(60 + V, u)) * (
        z.softmax(-1) + torch.nn.functional.one_hot(Y.clamp(0), V)
    )
    δ_loss = (2 * δ.amax(-1) + gamma(60 + V, u) * (1 + 2 * z.abs().amax(-1))).sum()
    δ_p = δ_p + gamma(N, u)
    return [δ_loss, δ_p @ w.abs() + gamma(V, u) * w.abs().sum(0), δ_p.mT @ h.abs(), δ_p.sum(0)]


@dtypes
@pytest.mark.parametrize("chunk", [None, 1, 4, 13, 50])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.3}, {"reduction": "sum"}, {"ignore_index": 4}], ids=str)
def test_it_is_the_loss_of_the_logits(chunk, options, dtype):
    leaves = [x.to(dtype) for x in (H, W, BIAS)]
    y = torch.where(Y < 0, options.get("ignore_index", -100), Y)
    got = gradients(lambda h, w, b: linear_cross_entropy(h, w, y, bias=b, chunk=chunk, **options), *leaves)
    exact = [x.double() for x in leaves]
    want = gradients(lambda h, w, b: cross_entropy(h @ w.mT + b, y, **options), *exact)
    # The logits and probabilities of halves are rounded to halves.
    u = max(working_roundoff(dtype), 2 * U[dtype])
    for have, x, bound in zip(got, want, bounds(*exact, u), strict=True):
        assert have.dtype == dtype
        judge(have, x, after_rounding(x, bound, dtype))
    assert bool((got[1][y == options.get("ignore_index", -100)] == 0).all())


def test_axes_before_the_last_and_no_bias():
    h, y = H[:12].reshape(3, 4, D), Y[:12].reshape(3, 4)
    loss, dh, dw = gradients(lambda h, w: linear_cross_entropy(h, w, y), h, W)
    flat = gradients(lambda h, w: linear_cross_entropy(h, w, y.flatten()), h.reshape(12, D), W)
    assert torch.equal(loss, flat[0])
    assert torch.equal(dh, flat[1].view(3, 4, D))
    assert torch.equal(dw, flat[2])


def test_no_target_no_loss_and_poison_that_is_ignored():
    for y, h in ((torch.full((N,), -100), H), (torch.zeros(0, dtype=torch.long), H[:0])):
        assert not any(bool(x.any()) for x in gradients(lambda h, w, y=y: linear_cross_entropy(h, w, y), h, W))
    poisoned = H.clone()
    poisoned[Y < 0] = torch.nan
    for got, want in zip(
        *(gradients(lambda h, w: linear_cross_entropy(h, w, Y), h, W) for h in (poisoned, H)), strict=True
    ):
        assert torch.equal(got, want)


def test_large_logits_overflow_nothing():
    for dtype in DTYPES:
        h, w = torch.full((2, 1), 100.0, dtype=dtype), torch.tensor([[100.0], [-100.0]], dtype=dtype)
        loss, dh, dw = gradients(lambda h, w: linear_cross_entropy(h, w, torch.tensor([0, 1])), h, w)
        assert float(loss) == float(torch.tensor(1e4).to(dtype))  # the mean of 0 and 20000
        assert dh.tolist() == [[0.0], [100.0]]
        assert dw.tolist() == [[50.0], [-50.0]]


def test_under_autocast_it_computes_as_the_head_would():
    h, w = H.float(), W.float()
    with torch.autocast("cpu", torch.bfloat16):
        loss, dh, dw = gradients(lambda h, w: linear_cross_entropy(h, w, Y), h, w)
    assert loss.dtype == torch.float32
    assert dh.dtype == dw.dtype == torch.float32
    half = gradients(lambda h, w: linear_cross_entropy(h, w, Y), h.bfloat16(), w.bfloat16())
    assert torch.equal(dw, half[2].float())


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_it_compiles_to_one_graph():
    torch.compiler.reset()

    def loss(h, w):
        return linear_cross_entropy(h, w, Y, chunk=4, label_smoothing=0.1)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert all(torch.equal(a, b) for a, b in zip(gradients(loss, H, W), gradients(compiled, H, W), strict=True))


def peak_bytes(function):
    """Count the bytes that live at once, at most, in forward and backward at GPT-2's vocabulary: no memory is taken."""
    with FakeTensorMode():
        h, w = torch.empty(2048, 128, requires_grad=True), torch.empty(50257, 128, requires_grad=True)
        y = torch.zeros(2048, dtype=torch.long)
        tracker = MemTracker()
        tracker.track_external(h, w, y)
        with tracker:
            function(h, w, y).backward()
        return tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]


def test_the_peak_of_memory_is_a_third_of_the_eager_one():
    eager = peak_bytes(lambda h, w, y: torch.nn.functional.cross_entropy(h @ w.mT, y))
    chunked = peak_bytes(linear_cross_entropy)
    assert eager > 2048 * 50257 * 4
    assert 0 < chunked < 0.35 * eager


REFUSALS = [
    ((H, W, Y[:-1]), {}, "target"),
    ((H, W, Y.int()), {}, "target"),
    ((H, W, Y + V), {}, "target"),
    ((H, W[:, :-1], Y), {}, "weight"),
    ((H, W[:0], Y), {}, "weight"),
    ((H, W.float(), Y), {}, "weight"),
    ((None, W, Y), {}, "h"),
    ((H, W, Y), {"bias": BIAS[:-1]}, "bias"),
    ((H, W, Y), {"chunk": 0}, "chunk"),
    ((H, W, Y), {"reduction": "none"}, "reduction"),
    ((H, W, Y), {"label_smoothing": 2.0}, "label_smoothing"),
    ((H, W, Y), {"ignore_index": 1.5}, "ignore_index"),
]


@pytest.mark.parametrize(("arguments", "options", "name"), REFUSALS)
def test_refusals(arguments, options, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}: expected"):
        linear_cross_entropy(*arguments, **options)


def test_chunks_are_large_where_there_is_no_cache_to_fill():
    h, weight = torch.empty(16_384, 768, device="meta"), torch.empty(50_304, 768, device="meta")
    assert _chunk(weight) == 4 * 768
    assert _chunk(weight[:, :0]) == CHUNK // 50_304
    assert _chunk(torch.empty(50_304, 768)) == CHUNK // 50_304
    assert linear_cross_entropy(h, weight, torch.empty(16_384, dtype=torch.int64, device="meta")).shape == ()
