"""Distances, angles and divergence by a second route, and their gradients numerically."""

import numpy as np
import pytest

from veriformer.spec.arithmetic import Exact, Float
from veriformer.spec.proofs.tower_arithmetic import entries
from veriformer.spec.registry import select
from veriformer.spec.vectors.distances import (
    cosine_similarity,
    cosine_similarity_vjp,
    euclidean_distance,
    euclidean_distance_vjp,
)
from veriformer.spec.vectors.entropy import entropy, entropy_vjp, kl_divergence, kl_divergence_vjp
from veriformer.spec.vectors.inner_products import largest_inner_product

XP = Float()
# Two computations with 300 bits agree when they are rounded to fp64.
EXACT = Exact(300)
C = EXACT.context


def floats(x):
    return np.array([float(e) for e in entries(x)]).reshape(np.shape(getattr(x, "value", x)))


def dot(u, v):
    return C.fsum(C.mpf(x) * C.mpf(y) for x, y in zip(u, v, strict=True))


def distance_route(a):
    return [
        C.norm([C.mpf(x) - C.mpf(y) for x, y in zip(u, v, strict=True)]) for u, v in zip(a["u"], a["v"], strict=True)
    ]


def divergence_route(a):
    rows = zip(a["y"], a["p"], strict=True)
    return [C.fsum(C.mpf(s) * (C.log(s) - C.log(t)) for s, t in zip(y, p, strict=True)) for y, p in rows]


ROUTES = {
    "euclidean-distance": distance_route,
    "cosine-similarity": lambda a: [
        dot(u, v) / C.sqrt(dot(u, u) * dot(v, v)) for u, v in zip(a["u"], a["v"], strict=True)
    ],
    "near-orthogonality": lambda a: C.mpf(1) / a["d"],
    "inner-product-search": lambda a: [max(dot(q, v) for v in a["v"]) for q in a["q"]],
    "divergence": divergence_route,
}


@pytest.mark.parametrize("slug", ROUTES)
def test_formula_by_two_routes(slug):
    (equation,), rng = select(slug), np.random.default_rng(3)
    for _ in range(8):
        arguments = equation.sample(rng)
        lifted = {name: EXACT.asarray(x) if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
        found = equation.formula(EXACT, **lifted)
        assert floats(found).tolist() == floats(np.array(ROUTES[slug](arguments), dtype=object)).tolist()


GRADIENTS = {
    "distance": (euclidean_distance, euclidean_distance_vjp, 2),
    "cosine": (cosine_similarity, cosine_similarity_vjp, 2),
    "divergence": (kl_divergence, kl_divergence_vjp, 2),
    "entropy": (entropy, entropy_vjp, 1),
}


@pytest.mark.parametrize(("formula", "vjp", "count"), GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_numerically(formula, vjp, count):
    # Central differences: with h = 2^-90 the error is about 2^-180, far below what rounding to fp64 shows.
    rng, h = np.random.default_rng(2), C.ldexp(1, -90)
    arrays = [EXACT.asarray(rng.uniform(0.1, 2, size=(2, 3))) for _ in range(count)]
    g = EXACT.asarray(rng.normal(size=2))
    gradients = vjp(EXACT, *arrays, g)
    for k, gradient in enumerate(gradients if isinstance(gradients, tuple) else (gradients,)):
        for place in np.ndindex(2, 3):
            sides = []
            for step in (h, -h):
                moved = arrays[k].value.copy()
                moved[place] += step
                y = formula(EXACT, *arrays[:k], EXACT.asarray(moved), *arrays[k + 1 :])
                sides.append(np.sum(g.value * y.value))
            assert float((sides[0] - sides[1]) / (2 * h)) == float(gradient.value[place])


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
