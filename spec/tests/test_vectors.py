"""Distances, angles and divergence by hand and at their edges."""

import numpy as np

from tests.values import EXACT, XP, floats
from veriformer.spec.vectors.distances import cosine_similarity, euclidean_distance
from veriformer.spec.vectors.entropy import entropy, kl_divergence
from veriformer.spec.vectors.inner_products import largest_inner_product


def test_angles_by_hand():
    u = XP.asarray([[1.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    v = XP.asarray([[0.0, 5.0], [6.0, 8.0], [-2.0, -2.0]])
    assert floats(cosine_similarity(EXACT, EXACT.asarray(u.value), EXACT.asarray(v.value))).tolist() == [0, 1, -1]
    assert floats(euclidean_distance(XP, u, v))[1] == 5


def test_what_is_impossible_adds_nothing():
    y, p = XP.asarray([1.0, 0.0]), XP.asarray([0.5, 0.5])
    assert floats(kl_divergence(XP, y, p)) == np.log(2)
    assert floats(kl_divergence(XP, y, y)) == 0
    assert floats(entropy(XP, y)) == 0
    assert floats(entropy(XP, p)) == np.log(2)


def test_the_largest_of_one_vector_is_its_own():
    q, v = XP.asarray([[1.0, 2.0]]), XP.asarray([[3.0, -1.0]])
    assert floats(largest_inner_product(XP, q, v)).tolist() == [1]


def test_random_directions_have_the_rate():
    # The mean of N squared cosines has variance 2 (d − 1) / (N d² (d + 2)); six deviations are allowed for.
    rng, n, d = np.random.default_rng(0), 4000, 50
    v = rng.normal(size=(n, d))
    mean = float((v[:, 0] ** 2 / (v**2).sum(axis=1)).mean())
    assert abs(mean - 1 / d) <= 6 * (2 * (d - 1) / (n * d**2 * (d + 2))) ** 0.5
