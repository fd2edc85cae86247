"""Position encodings: laws, far positions, exact edges, refusals that name the argument."""

import pytest
import torch

from tests.derived_bounds import dtypes, gamma, judge, random
from veriformer.impl import alibi_bias, alibi_slopes, rope, sinusoidal_encoding, t5_relative_position_bucket

U = 2.0**-53


@pytest.fixture(autouse=True)
def _in_double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@dtypes
def test_position_zero_turns_nothing(dtype):
    x = random(2, 3, 8, dtype=dtype)
    for options in ({}, {"pairing": "half"}, {"scaling": ("ntk", 4.0)}, {"scaling": ("linear", 2.0)}):
        assert torch.equal(rope(x, torch.zeros(3, dtype=torch.int64), **options), x)


def test_scores_depend_on_distance_alone():
    q, k = random(1, 8), random(1, 8, seed=1)
    for options in ({}, {"pairing": "half"}, {"scaling": ("ntk", 4.0)}):
        scores = [
            (rope(q, torch.tensor([m]), **options) * rope(k, torch.tensor([m - 7]), **options)).sum()
            for m in (7, 0, 1000, -3)
        ]
        size = q.norm() * k.norm() * 1000
        for score in scores[1:]:
            judge(score, scores[0], gamma(60, U) * size)


def test_the_two_pairings_are_one_rotation():
    x, at = random(5, 8), torch.tensor([0, 3, 100000, -7, 2])
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    assert torch.equal(rope(x[:, order], at, pairing="half"), rope(x, at)[:, order])


@dtypes
def test_neighbours_far_out_are_told_apart(dtype):
    x = torch.ones(2, 2, dtype=dtype)
    for p in (256, 2048, 99999):
        y = rope(x, torch.tensor([p, p + 1])).double()
        angle = torch.atan2(y[:, 1], y[:, 0])
        turned = torch.remainder(angle[1] - angle[0], 2 * torch.pi)
        assert abs(turned - 1) < 8 * torch.finfo(dtype).eps


def test_positions_for_every_axis_and_scalings():
    x, at = random(2, 3, 4, 6), torch.arange(4)
    assert torch.equal(rope(x, at), rope(x, at.expand(1, 3, 4)))
    assert torch.equal(rope(x, 2 * at, scaling=("linear", 2.0)), rope(x, at))
    slow, plain = rope(x, 2 * at, scaling=("ntk", 2.0)), rope(x, at)
    judge(slow[..., 4:], plain[..., 4:], gamma(60, U) * (1 + x[..., 4:].abs().sum(-1, keepdim=True).expand(2, 3, 4, 2)))
    assert torch.equal(rope(x, at, scaling=("ntk", 2.0))[..., :2], plain[..., :2])


def test_sinusoids_shift_by_rotation_and_have_one_length():
    pe = sinusoidal_encoding(20, 6)
    s, c = pe[:, 0::2], pe[:, 1::2]
    judge(s[3:], s[:-3] * c[3] + c[:-3] * s[3], torch.full((17, 3), gamma(60, U)))
    judge(pe.square().sum(-1), torch.full((20,), 3.0), torch.full((20,), gamma(40, U)))
    assert sinusoidal_encoding(3, 5).shape == (3, 5)
    assert sinusoidal_encoding(0, 4).shape == (0, 4)


def test_results_follow_the_default_dtype():
    torch.set_default_dtype(torch.bfloat16)
    for y in (sinusoidal_encoding(300, 4), alibi_slopes(3), alibi_bias(3, 2, 4)):
        assert y.dtype == torch.bfloat16
    assert not torch.equal(sinusoidal_encoding(300, 4)[257], sinusoidal_encoding(300, 4)[256])


def test_slopes_of_other_numbers_of_heads():
    assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
    assert alibi_slopes(6).tolist() == [0.25, 0.0625, 2.0**-6, 2.0**-8, 0.5, 0.125]
    assert torch.equal(alibi_bias(4, 5, 7)[:, -2:], alibi_bias(4, 2, 7))
    assert alibi_bias(4, 1, 3)[0].tolist() == [[-0.5, -0.25, 0.0]]


@pytest.mark.parametrize(("both", "total", "far"), [(True, 32, 128), (False, 32, 128), (True, 8, 16), (False, 2, 5)])
def test_buckets_begin_where_whole_powers_say(both, total, far):
    options = {"bidirectional": both, "num_buckets": total, "max_distance": far}
    distances = torch.arange(2 * far)
    b = t5_relative_position_bucket(-distances, **options)
    buckets = total // 2 if both else total
    e = buckets // 2
    many = buckets - e
    for x, bucket in zip(distances.tolist(), b.tolist(), strict=True):
        reached = sum(x**many >= far**t * e ** (many - t) for t in range(1, many))
        assert bucket == (x if x < e else e + reached)
    ahead = t5_relative_position_bucket(distances[1:], **options)
    assert torch.equal(ahead, b[1:] + buckets if both else torch.zeros_like(ahead))


X, AT = random(3, 6), torch.arange(3)
BAD = {
    "x": lambda: rope(X[:, :5], AT),
    "positions": lambda: rope(X[None, None].expand(2, 4, 3, 6), torch.zeros(2, 3)),
    "pairing": lambda: rope(X, AT, pairing="thirds"),
    "scaling": lambda: rope(X, AT, scaling=("linear", 0)),
    "base": lambda: rope(X, AT, base=0),
    "d_model": lambda: sinusoidal_encoding(3, -2),
    "num_heads": lambda: alibi_slopes(0),
    "n_k": lambda: alibi_bias(2, 3, True),
    "relative_position": lambda: t5_relative_position_bucket(X),
    "num_buckets": lambda: t5_relative_position_bucket(AT, num_buckets=7),
    "max_distance": lambda: t5_relative_position_bucket(AT, max_distance=8),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_refused_is_named(name):
    with pytest.raises((ValueError, TypeError), match=rf"^{name}: expected .*, got .*; "):
        BAD[name]()
