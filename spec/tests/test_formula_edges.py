"""The formulas at their edges: nothing visible, nothing counted, infinities, poison behind masks, grouped heads."""

from itertools import product

import numpy as np
import pytest

from tests.values import EXACT, XP, floats
from veriformer.spec.arithmetic import FORMATS, Exact, RunningError
from veriformer.spec.arithmetic.exact_inputs import exactly_equal, unbroadcast
from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.spec.attention.causal_mask import causal_mask, masked_softmax, visible
from veriformer.spec.attention.online_softmax import State, finish, merge, partial
from veriformer.spec.layers.layer_norm import layer_norm, layer_norm_vjp
from veriformer.spec.layers.rms_norm import rms_norm, rms_norm_vjp
from veriformer.spec.optimization.clip_grad_norm import clip_grad_norm, global_norm
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.logsumexp import logsumexp, logsumexp_vjp
from veriformer.spec.scores.perplexity import perplexity, perplexity_vjp
from veriformer.spec.scores.softmax import softmax

EVERY = {
    "float": XP,
    "exact": Exact(),
    "rounded": RunningError(FORMATS["fp32"]),
    "rounded-fp64": RunningError(FORMATS["fp64"]),
}
every_arithmetic = pytest.mark.parametrize("xp", EVERY.values(), ids=EVERY)
RNG = np.random.default_rng(0)


def inputs(xp=XP, b=2, h=4, groups=2, n_q=3, n_k=5, d_k=3, d_v=2):
    rng = np.random.default_rng(1)
    shapes = (b, h, n_q, d_k), (b, groups, n_k, d_k), (b, groups, n_k, d_v), (b, h, n_q, d_v)
    return [rng.normal(size=shape) for shape in shapes]


def run(q, k, v, xp=XP, **options):
    return floats(attention(xp, xp.asarray(q), xp.asarray(k), xp.asarray(v), **options))


def run_vjp(q, k, v, g, xp=XP, **options):
    gradients = attention_vjp(xp, *map(xp.asarray, (q, k, v, g)), **options)
    return [None if x is None else floats(x) for x in gradients]


@pytest.mark.parametrize("alignment", ["bottom-right", "top-left"])
@pytest.mark.parametrize("window", [None, 1, 2, 3])
def test_causal_mask_by_brute_force(window, alignment):
    for n_q, n_k in product(range(5), range(5)):
        offset = n_k - n_q if alignment == "bottom-right" else 0
        expected = [
            [j <= i + offset and (window is None or j > i + offset - window) for j in range(n_k)] for i in range(n_q)
        ]
        assert causal_mask(n_q, n_k, window=window, alignment=alignment).tolist() == expected


def test_visible_combines_what_hides():
    mask = RNG.random((2, 1, 3, 4)) < 0.5
    seen = visible(3, 4, mask=mask, is_causal=True, window=2)
    assert seen.shape == (2, 1, 3, 4)
    assert (seen == (mask & causal_mask(3, 4, window=2))).all()
    assert visible(2, 3).all()


def test_a_window_needs_causality():
    with pytest.raises(ValueError, match="window"):
        visible(2, 2, window=1)


@every_arithmetic
def test_rows_that_see_nothing_are_zero_and_pass_nothing_on(xp):
    q, k, v, g = inputs(n_q=2, n_k=3)
    mask = np.array([[True, False, True], [False, False, False]])
    assert (run(q, k, v, xp, mask=mask)[:, :, 1] == 0).all()
    assert (run_vjp(q, k, v, g, xp, mask=mask)[0][:, :, 1] == 0).all()


def test_rows_that_see_nothing_give_keys_and_values_no_gradient():
    q, k, v, g = inputs(n_q=2, n_k=3)
    mask = np.array([[True, False, True], [False, False, False]])
    both = run_vjp(q, k, v, g, EXACT, mask=mask)
    only_first = run_vjp(q[:, :, :1], k, v, g[:, :, :1], EXACT, mask=mask[:1])
    assert (both[1] == only_first[1]).all()
    assert (both[2] == only_first[2]).all()


def test_first_rows_of_a_causal_mask_with_more_queries_than_keys_are_empty():
    q, k, v, _ = inputs(n_q=5, n_k=2)
    o = run(q, k, v, is_causal=True)
    assert (o[:, :, :3] == 0).all()
    assert (o[:, :, 3:] != 0).all()


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_masks_and_biases_align_right(rank):
    q, k, v, g = inputs()
    shape = (2, 4, 3, 5)[4 - rank :]
    mask, bias = RNG.random(shape) < 0.7, RNG.normal(size=shape)
    full = {"mask": np.broadcast_to(mask, (2, 4, 3, 5)), "bias": XP.asarray(np.broadcast_to(bias, (2, 4, 3, 5)))}
    assert (run(q, k, v, mask=mask, bias=XP.asarray(bias)) == run(q, k, v, **full)).all()
    small = run_vjp(q, k, v, g, mask=mask, bias=XP.asarray(bias))[3]
    large = run_vjp(q, k, v, g, **full)[3]
    assert small.shape == shape
    assert (small == floats(unbroadcast(XP, XP.asarray(large), shape))).all()


@every_arithmetic
def test_a_bias_of_minus_infinity_hides(xp):
    q, k, v, g = inputs()
    mask = RNG.random((3, 5)) < 0.5
    mask[1] = False
    bias = xp.asarray(np.where(mask, 0.0, -np.inf))
    assert (run(q, k, v, xp, bias=bias) == run(q, k, v, xp, mask=mask, bias=xp.asarray(np.zeros((3, 5))))).all()
    with_bias = run_vjp(q, k, v, g, xp, bias=bias)
    with_mask = run_vjp(q, k, v, g, xp, mask=mask, bias=xp.asarray(np.zeros((3, 5))))
    assert all((a == b).all() for a, b in zip(with_bias, with_mask, strict=True))
    assert (with_bias[3][~mask] == 0).all()


@every_arithmetic
def test_the_shift_is_the_largest_visible_score(xp):
    s = xp.asarray([[-1e4, -1e4, 0.0], [1e4, 1e4, -1e4]])
    see = np.array([[True, True, False], [True, False, True]])
    assert floats(masked_softmax(xp, s, see)).tolist()[0] == [0.5, 0.5, 0.0]
    assert floats(masked_softmax(xp, s, see)).tolist()[1][:2] == [1.0, 0.0]


def test_poison_behind_a_mask_is_never_touched():
    q, k, v, g = inputs(n_k=5)
    mask = np.array([True, False, True, True, False])
    poisoned_k, poisoned_v = k.copy(), v.copy()
    poisoned_k[:, :, ~mask], poisoned_v[:, :, ~mask] = np.nan, np.inf
    assert (run(q, poisoned_k, poisoned_v, mask=mask[None]) == run(q, k, v, mask=mask[None])).all()
    clean = run_vjp(q, k, v, g, mask=mask[None])
    for a, b in zip(run_vjp(q, poisoned_k, poisoned_v, g, mask=mask[None])[:3], clean[:3], strict=True):
        assert (a == b).all()


def test_no_keys_and_no_queries():
    q, k, v, g = inputs()
    assert (run(q, k[:, :, :0], v[:, :, :0]) == np.zeros((2, 4, 3, 2))).all()
    dq, dk, dv, _ = run_vjp(q, k[:, :, :0], v[:, :, :0], g)
    assert (dq == np.zeros(q.shape)).all()
    assert dk.shape == (2, 2, 0, 3)
    assert run(q[:, :, :0], k, v).shape == (2, 4, 0, 2)
    dq, dk, dv, _ = run_vjp(q[:, :, :0], k, v, g[:, :, :0])
    assert dq.shape == (2, 4, 0, 3)
    assert (dk == 0).all()
    assert (dv == 0).all()


def test_grouped_heads_read_their_group():
    q, k, v, g = inputs(h=6, groups=3)
    repeated = [np.repeat(x, 2, axis=1) for x in (k, v)]
    assert (run(q, k, v) == run(q, *repeated)).all()
    xp = EVERY["rounded-fp64"]
    dq, dk, dv, _ = attention_vjp(xp, *map(xp.asarray, (q, k, v, g)))
    full = run_vjp(q, *repeated, g)
    for small, large in ((dq, full[0]), (dk, full[1]), (dv, full[2])):
        summed = large.reshape(2, small.shape[1], -1, *small.shape[2:]).sum(axis=2)
        assert (np.abs(floats(small) - summed) <= small.error).all()


@pytest.mark.parametrize("scale", [0.0, -1.5, 2.0])
def test_any_scale(scale):
    q, k, v, _ = inputs()
    assert (run(q, k, v, EXACT, scale=scale) == run(EXACT.asarray(q) * scale * 2, k, v, EXACT, scale=0.5)).all()
    if scale == 0:
        mean = floats(EXACT.sum(EXACT.asarray(v), axis=2, keepdims=True) / 5)
        assert (run(q, k, v, EXACT, scale=scale) == np.repeat(mean, 2, axis=1)).all()


def test_dropout_spares_what_is_kept_and_scales_it():
    q, k, v, g = inputs()
    keep = RNG.random((2, 4, 3, 5)) < 0.5
    assert (run(q, k, v, keep=np.ones_like(keep), dropout_p=0.5) == 2 * run(q, k, v)).all()
    assert (run(q, k, v, keep=np.zeros_like(keep), dropout_p=1) == 0).all()
    assert all((x == 0).all() for x in run_vjp(q, k, v, g, keep=np.zeros_like(keep), dropout_p=1)[:3])
    weights = run(q, k, np.broadcast_to(np.eye(5), (2, 2, 5, 5)), keep=keep, dropout_p=0.5)
    assert (weights == np.where(keep, 2 * run(q, k, np.broadcast_to(np.eye(5), (2, 2, 5, 5))), 0)).all()


def test_softcap_bounds_the_scores():
    q, k, _, _ = inputs(n_k=2)
    weights = run(q * 1e6, k, np.broadcast_to(np.eye(2), (2, 2, 2, 2)), softcap=1.0)
    assert weights.min() >= np.exp(-1) / (np.exp(-1) + np.exp(1)) * (1 - 2**-50)


@every_arithmetic
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_targets_count_for_nothing(xp, reduction):
    z = RNG.normal(size=(3, 4))
    z[1] = np.nan
    target, rest = np.array([2, -100, 0]), [0, 2]
    g = np.array([0.5, 2.0, -1.0]) if reduction == "none" else np.array(1.5)
    options = {"reduction": reduction, "label_smoothing": 0.25}
    loss = floats(cross_entropy(xp, xp.asarray(z), target, **options))
    without = floats(cross_entropy(xp, xp.asarray(z[rest]), target[rest], **options))
    assert (loss[rest] == without).all() if reduction == "none" else loss == without
    dz, none = cross_entropy_vjp(xp, xp.asarray(z), target, xp.asarray(g), **options)
    shorter = cross_entropy_vjp(xp, xp.asarray(z[rest]), target[rest], xp.asarray(g[rest] if g.ndim else g), **options)
    assert none is None
    assert (floats(dz)[rest] == floats(shorter[0])).all()
    assert (floats(dz)[1] == 0).all()


@every_arithmetic
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_no_target_at_all(xp, reduction):
    z, target = xp.asarray(RNG.normal(size=(2, 3))), np.array([1, 1])
    options = {"ignore_index": 1, "reduction": reduction}
    assert (floats(cross_entropy(xp, z, target, **options)) == 0).all()
    g = xp.asarray(np.ones(2) if reduction == "none" else 1.0)
    assert (floats(cross_entropy_vjp(xp, z, target, g, **options)[0]) == 0).all()
    assert floats(perplexity(xp, z, target, ignore_index=1)) == 1
    assert (floats(perplexity_vjp(xp, z, target, xp.asarray(1.0), ignore_index=1)) == 0).all()


@every_arithmetic
def test_impossible_classes(xp):
    z = xp.asarray([[0.5, -np.inf, 1.0]])
    y = xp.asarray([[0.25, 0.0, 0.75]])
    two = [cross_entropy(xp, xp.asarray([[0.5, 1.0]]), xp.asarray([[0.25, 0.75]]))]
    assert floats(cross_entropy(xp, z, y)) == floats(two[0])
    dz, _ = cross_entropy_vjp(xp, z, y, xp.asarray(1.0))
    assert floats(dz)[0, 1] == 0
    assert np.isfinite(floats(cross_entropy(xp, z, np.array([2]))))
    assert floats(cross_entropy_vjp(xp, z, np.array([2]), xp.asarray(1.0))[0])[0, 1] == 0


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.5}])
def test_a_hit_on_an_impossible_class_is_infinite(options):
    z = XP.asarray([[0.5, -np.inf, 1.0]])
    assert floats(cross_entropy(XP, z, np.array([1 if not options else 0]), **options)) == np.inf
    assert floats(cross_entropy(XP, z, XP.asarray([[0.5, 0.5, 0.0]]), **options)) == np.inf


def test_index_and_one_hot_targets_agree():
    z, target = RNG.normal(size=(4, 5)), np.array([0, 4, 2, 2])
    one_hot = np.eye(5)[target]
    xp = Exact(300)
    for alpha in (0.0, 0.25):
        a = cross_entropy(xp, xp.asarray(z), target, label_smoothing=alpha)
        b = cross_entropy(xp, xp.asarray(z), xp.asarray(one_hot), label_smoothing=alpha)
        assert floats(a) == floats(b)


def test_logsumexp_of_nothing():
    assert (floats(logsumexp(XP, XP.asarray(np.zeros((2, 0))))) == -np.inf).all()
    assert floats(logsumexp_vjp(XP, XP.asarray(np.zeros((2, 0))), XP.asarray(np.ones(2)))).shape == (2, 0)
    hidden = XP.asarray([[-np.inf, -np.inf], [0.0, -np.inf]])
    assert floats(logsumexp(XP, hidden)).tolist() == [-np.inf, 0.0]
    assert floats(logsumexp_vjp(XP, hidden, XP.asarray(np.ones(2)))).tolist() == [[0, 0], [1, 0]]


def test_huge_scores_do_not_overflow():
    z = XP.asarray([[1e300, 1e300, -1e300]])
    assert floats(softmax(XP, z)).tolist() == [[0.5, 0.5, 0.0]]
    assert floats(logsumexp(XP, z)).tolist() == [1e300]
    assert floats(cross_entropy(XP, z, np.array([0]))) == np.log(2)


def test_clipping_edges():
    g = [XP.asarray([3.0, 0.0]), XP.asarray([[4.0]]), XP.asarray(np.zeros((0, 2)))]
    inside, norm = clip_grad_norm(XP, g, 5.0)
    assert floats(norm) == 5
    assert all((floats(a) == floats(b)).all() for a, b in zip(inside, g, strict=True))
    half, _ = clip_grad_norm(XP, g, 2.5)
    assert [floats(x).ravel().tolist() for x in half] == [[1.5, 0.0], [2.0], []]
    assert all((floats(x) == 0).all() for x in clip_grad_norm(XP, g, 0.0)[0])
    assert (floats(clip_grad_norm(XP, g, np.inf)[0][0]) == [3, 0]).all()
    for nothing in ([], [XP.asarray(np.zeros(3))], [XP.asarray(np.zeros(0))]):
        clipped, norm = clip_grad_norm(XP, nothing, 1.0)
        assert floats(norm) == 0
        assert all((floats(x) == 0).all() for x in clipped)


def test_norms_whose_squares_leave_the_range():
    for size in (2.0**700, 2.0**-700):
        assert floats(global_norm(XP, [XP.asarray([3 * size, 4 * size])])) == 5 * size
    (clipped,), _ = clip_grad_norm(XP, [XP.asarray([3e200, 4e200])], 5.0)
    assert (abs(floats(clipped) - [3, 4]) <= 2**-50).all()


def test_norms_without_weight_or_bias():
    x, g = (XP.asarray(RNG.normal(size=(2, 3))) for _ in range(2))
    weight, bias = XP.asarray(np.ones(3)), XP.asarray(np.zeros(3))
    assert (floats(layer_norm(XP, x)) == floats(layer_norm(XP, x, weight, bias))).all()
    assert (floats(layer_norm(XP, x, None, bias)) == floats(layer_norm(XP, x))).all()
    assert (floats(rms_norm(XP, x)) == floats(rms_norm(XP, x, weight))).all()
    dx, dw, db = layer_norm_vjp(XP, x, None, bias, g)
    assert dw is None
    assert (floats(db) == floats(g).sum(axis=0)).all()
    assert (floats(dx) == floats(layer_norm_vjp(XP, x, weight, None, g)[0])).all()
    assert rms_norm_vjp(XP, x, None, g)[1] is None


def test_norms_admit_no_eps():
    x = XP.asarray([[1.0, 3.0]])
    assert floats(layer_norm(XP, x, eps=0)).tolist() == [[-1, 1]]
    assert (floats(rms_norm(XP, XP.asarray([[3.0, 3.0]]), eps=0)) == 1).all()


def test_states_of_nothing_change_nothing():
    s, v = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 2))
    s[0] = -np.inf
    part = partial(XP, XP.asarray(s), XP.asarray(v))
    empty = partial(XP, XP.asarray(s[:, :0]), XP.asarray(v[:0]))
    for both in (merge(XP, part, empty), merge(XP, empty, part)):
        assert all((floats(a) == floats(b)).all() for a, b in zip(both, part, strict=True))
    assert (floats(finish(XP, part))[0] == 0).all()
    assert (floats(finish(XP, empty)) == 0).all()
    assert isinstance(merge(XP, empty, empty), State)


def test_points():
    assert exactly_equal(XP.asarray([0.0, -np.inf, 1.0]), -np.inf).tolist() == [False, True, False]
    assert exactly_equal(Exact().asarray([0.0, -np.inf]), 0).tolist() == [True, False]
    x = XP.asarray(np.ones((2, 3, 4)))
    assert floats(unbroadcast(XP, x, (3, 1))).tolist() == [[8]] * 3
    assert floats(unbroadcast(XP, x, ())) == 24
