"""Multi-head attention at its edges, what its bounds tell apart, and the growth of its costs."""

import numpy as np

from tests.values import XP, floats
from veriformer.spec import costs
from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.heads.multi_head_attention import concat, multi_head_attention, split
from veriformer.spec.heads.weights import COSTS


def inputs(heads=4, groups=2, n_q=3, n_k=None, d=5, d_k=2, d_v=3, d_out=4, d_c=6, batch=2):
    rng = np.random.default_rng(0)
    width = d if n_k is None else d_c
    shapes = {"x": (batch, n_q, d), "w_q": (d, heads * d_k), "w_k": (width, groups * d_k), "w_v": (width, groups * d_v)}
    shapes |= {"w_o": (heads * d_v, d_out)} | ({} if n_k is None else {"context": (batch, n_k, d_c)})
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}, {
        "num_heads": heads,
        "num_kv_heads": groups,
    }


def lifted(xp, arrays):
    return {name: xp.asarray(x) for name, x in arrays.items()}


def run(arrays, xp=XP, **options):
    return floats(multi_head_attention(xp, **lifted(xp, arrays), **options))


def test_key_heads_default_to_heads():
    arrays, _ = inputs(heads=2, groups=2)
    assert (run(arrays, num_heads=2) == run(arrays, num_heads=2, num_kv_heads=2)).all()


def test_a_row_that_sees_nothing_is_zero():
    arrays, options = inputs(n_q=3)
    y = run(arrays, **options, attention_mask=[[0, 0, 0], [1, 1, 1]])
    assert (y[0] == 0).all()
    assert (y[1] != 0).any()


def test_hidden_tokens_play_no_part():
    arrays, options = inputs(n_q=2, n_k=4)
    mask = np.array([[1, 1, 0, 1], [0, 1, 1, 1]])
    other = {**arrays, "context": np.where(mask[:, :, None] == 1, arrays["context"], 1e3)}
    assert (run(arrays, **options, attention_mask=mask) == run(other, **options, attention_mask=mask)).all()


def test_split_and_concat_are_inverse_and_keep_tokens_together():
    x = np.arange(24.0).reshape(1, 3, 8)
    heads = split(XP, XP.asarray(x), 4)
    assert floats(heads)[0, 1].tolist() == [[2, 3], [10, 11], [18, 19]]
    assert (floats(concat(XP, heads)) == x).all()


def test_bounds_hold_and_tell_heads_apart():
    arrays, options = inputs()
    arrays = {name: x.astype(np.float32).astype(np.float64) for name, x in arrays.items()}
    xp = RunningError(FORMATS["fp32"])
    exact, bound = xp.judgeable(multi_head_attention(xp, **lifted(xp, arrays), **options))
    assert (abs(run(arrays, Float(FORMATS["fp32"]), **options) - exact) <= bound).all()
    swapped = {**arrays, "w_q": np.roll(arrays["w_q"], 2, axis=1)}
    assert (abs(run(swapped, **options) - exact) > bound).any()
    assert (abs(run(arrays, num_heads=2, num_kv_heads=1) - exact) > bound).any()


def test_attention_outgrows_the_projections_at_twice_the_width():
    d, at = 64, {"B": 1, "H": 4, "G": 4, "d": 64, "d_k": 16, "d_v": 16}
    whole, part = COSTS["FLOPs"](), COSTS["FLOPs of the projections"]()
    for n, sign in ((2 * d - 1, 1), (2 * d, 0), (2 * d + 1, -1)):
        both = [costs.evaluate(cost, **at, n_q=n, n_k=n) for cost in (part, whole - part)]
        assert np.sign(int(both[0] - both[1])) == sign
