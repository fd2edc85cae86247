"""Encodings, rotations and biases of positions at their edges; slopes and buckets by a second route."""

from itertools import product

import numpy as np
import pytest

from tests.values import EXACT, XP, floats
from veriformer.spec.arithmetic import FORMATS, Exact, RunningError
from veriformer.spec.positions.alibi import alibi_bias, alibi_slopes
from veriformer.spec.positions.angles import frequencies
from veriformer.spec.positions.sinusoidal_encoding import sinusoidal_encoding
from veriformer.spec.positions.t5_bias import t5_bias, t5_bias_vjp
from veriformer.spec.positions.t5_relative_position_bucket import edges, t5_relative_position_bucket
from veriformer.spec.proofs.tower_arithmetic import entries

RNG = np.random.default_rng(0)


def same(ours, theirs):
    return floats(ours).tolist() == floats(np.array(theirs, dtype=object)).tolist()


def test_an_encoding_of_no_positions_is_empty():
    assert sinusoidal_encoding(XP, 0, 6).shape == (0, 6)


def test_scaled_frequencies():
    plain = floats(frequencies(EXACT, 8))
    linear, ntk = (floats(frequencies(EXACT, 8, scaling=(kind, 4.0))) for kind in ("linear", "ntk"))
    assert (linear == plain / 4).all()
    assert ntk[0] == 1
    assert ntk[-1] == plain[-1] / 4
    assert (np.diff(ntk / plain) < 0).all()
    assert floats(frequencies(EXACT, 2, scaling=("ntk", 4.0))).tolist() == [1.0]


def test_unknown_scaling_is_refused():
    with pytest.raises(ValueError, match="scaling"):
        frequencies(XP, 8, scaling=("yarn", 2.0))


def slopes_of_the_paper(n):
    """By the recursion of the paper's authors."""
    c = EXACT.context
    if n & (n - 1) == 0:
        start = c.power(2, -c.mpf(8) / n)
        return [start * start**i for i in range(n)]
    below = 2 ** int(np.floor(np.log2(n)))
    return slopes_of_the_paper(below) + slopes_of_the_paper(2 * below)[0::2][: n - below]


@pytest.mark.parametrize("heads", [*range(1, 20), 32, 71, 128])
def test_slopes_are_those_of_the_paper(heads):
    ours = alibi_slopes(EXACT, heads)
    assert same(ours, slopes_of_the_paper(heads))
    assert len(set(entries(ours))) == heads


def test_slopes_of_eight_and_of_three_heads():
    assert floats(alibi_slopes(EXACT, 8)).tolist() == [2.0**-k for k in range(1, 9)]
    assert floats(alibi_slopes(EXACT, 3)).tolist() == [2.0**-4, 2.0**-8, 2.0**-2]


def test_slopes_of_other_counts_are_not_one_sequence():
    xp = RunningError(FORMATS["fp32"])
    value, bound = xp.judgeable(alibi_slopes(xp, 12))
    one_sequence = 2.0 ** (-8 * np.arange(1, 13) / 12)
    assert (abs(one_sequence - value) > bound).any()
    assert (abs(np.float32(floats(np.array(slopes_of_the_paper(12)))) - value) <= bound).all()


@pytest.mark.parametrize(("n_q", "n_k"), [(4, 4), (1, 5), (2, 3), (5, 2), (0, 3)])
def test_alibi_by_counting(n_q, n_k):
    bias = floats(alibi_bias(EXACT, 8, n_q, n_k))
    expected = [
        [[-(2.0 ** -(h + 1)) * abs(i + n_k - n_q - j) for j in range(n_k)] for i in range(n_q)] for h in range(8)
    ]
    assert bias.shape == (8, n_q, n_k)
    assert bias.tolist() == expected


def test_decoding_reads_the_last_row():
    assert (floats(alibi_bias(XP, 6, 1, 9)) == floats(alibi_bias(XP, 6, 9, 9))[:, -1:]).all()


def bucket_by_logarithm(distance, buckets, far):
    """⌊e + L log(x/e) / log(M/e)⌋ in 2000 bits, where a whole number is told from what is just below it."""
    exact = buckets // 2
    if distance < exact:
        return distance
    c = Exact(2000).context
    b = (buckets - exact) * c.log(c.mpf(distance) / exact) / c.log(c.mpf(far) / exact)
    whole = c.nint(b)
    b = whole if abs(b - whole) < c.ldexp(1, -1900) else c.floor(b)
    return min(exact + int(b), buckets - 1)


@pytest.mark.parametrize(("buckets", "far"), [(32, 128), (16, 128), (4, 20), (5, 9), (2, 2), (2, 7), (8, 5), (7, 4)])
def test_buckets_by_the_logarithm(buckets, far):
    distances = np.arange(3 * far)
    one = t5_relative_position_bucket(-distances, bidirectional=False, num_buckets=buckets, max_distance=far)
    assert one.dtype == np.int64
    assert one.tolist() == [bucket_by_logarithm(int(x), buckets, far) for x in distances]
    assert (
        t5_relative_position_bucket(distances, bidirectional=False, num_buckets=buckets, max_distance=far) == 0
    ).all()
    behind = t5_relative_position_bucket(-distances, num_buckets=2 * buckets, max_distance=far)
    ahead = t5_relative_position_bucket(distances, num_buckets=2 * buckets, max_distance=far)
    assert (behind == one).all()
    assert (ahead == one + buckets * (distances > 0)).all()


def test_buckets_are_exact_where_the_logarithm_is_whole():
    # 8 · 16^(t/8) = 8 · 2^(t/2): for even t, buckets begin at 8, 16, 32 and 64.
    assert t5_relative_position_bucket([-15, -16, -31, -32, -63, -64, -127, -128]).tolist() == [
        9,
        10,
        11,
        12,
        13,
        14,
        15,
        15,
    ]
    assert edges(16, 128) == [1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]


def test_buckets_rise_and_saturate():
    b = t5_relative_position_bucket(-np.arange(500), bidirectional=False)
    assert (np.diff(b) >= 0).all()
    assert set(b) == set(range(32))
    assert (b[128:] == 31).all()
    assert t5_relative_position_bucket([[10**12], [-(10**12)]]).tolist() == [[31], [15]]


def test_t5_bias_looks_up():
    table = RNG.normal(size=(8, 3))
    bias = floats(t5_bias(XP, XP.asarray(table), 2, 4, max_distance=6))
    for h, i, j in product(range(3), range(2), range(4)):
        bucket = int(t5_relative_position_bucket(j - (i + 2), num_buckets=8, max_distance=6))
        assert bias[h, i, j] == table[bucket, h]


def test_a_bucket_collects_from_its_readers():
    g = XP.asarray(np.ones((3, 4, 4)))
    table = XP.asarray(np.zeros((8, 3)))
    readers = floats(t5_bias_vjp(XP, table, 4, 4, g, max_distance=6))
    assert readers.shape == (8, 3)
    assert (readers.sum(axis=0) == 16).all()
    assert (readers[0] == 4).all()
