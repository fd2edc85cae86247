"""Losses, embeddings and heads by a second route, their gradients numerically, and their costs."""

import numpy as np
import pytest

from veriformer.spec import costs
from veriformer.spec.arithmetic import FORMATS, Exact, Float, RunningError
from veriformer.spec.language.costs_language import language_costs
from veriformer.spec.language.lm_head import lm_head, lm_head_vjp
from veriformer.spec.language.masked_lm_loss import masked_lm_loss, masked_lm_loss_vjp
from veriformer.spec.language.next_token_loss import next_token_loss, next_token_loss_vjp
from veriformer.spec.language.token_embedding import token_embedding, token_embedding_vjp
from veriformer.spec.language.tokenizer_perplexity import perplexity_per_unit, perplexity_per_unit_vjp
from veriformer.spec.proofs.tower_arithmetic import entries
from veriformer.spec.registry import select
from veriformer.spec.scores.cross_entropy import cross_entropy
from veriformer.spec.scores.perplexity import perplexity

XP = Float()
# Two computations with 300 bits agree when they are rounded to fp64.
EXACT = Exact(300)
C = EXACT.context
RNG = np.random.default_rng(0)


def floats(x):
    return np.array([float(e) for e in entries(x)]).reshape(np.shape(getattr(x, "value", x)))


def same(ours, theirs):
    return floats(ours).tolist() == floats(np.array(theirs, dtype=object)).tolist()


def surprise(row, k):
    """−log of a probability, by the product of the statement's quotients."""
    return C.log(C.fsum(C.exp(C.mpf(z) - C.mpf(row[k])) for z in row))


def next_token_route(a):
    return [C.fsum(map(surprise, rows, ids)) for rows, ids in zip(a["logits"], a["target"], strict=True)]


def masked_route(a):
    rows, labels = a["logits"].reshape(-1, a["logits"].shape[-1]), a["labels"].ravel()
    each = [surprise(row, k) for row, k in zip(rows, labels, strict=True) if k != -100]
    return C.fsum(each) / len(each)


def per_unit_route(a):
    product = C.mpf(1)
    for row, k in zip(a["logits"], a["target"], strict=True):
        product *= C.exp(-surprise(row, k))
    return product ** (-C.mpf(1) / a["units"])


def head_route(a):
    return [[[C.fsum(C.mpf(x) * C.mpf(y) for x, y in zip(h, e, strict=True)) for e in a["weight"]] for h in rows]
            for rows in a["h"]]  # fmt: skip


ROUTES = {
    "next-token-loss": next_token_route,
    "token-embedding": lambda a: [[[C.mpf(x) for x in a["weight"][i]] for i in ids] for ids in a["ids"]],
    "weight-tying": head_route,
    "masked-lm-loss": masked_route,
    "tokenizer-perplexity": per_unit_route,
}


def lifted(xp, arguments):
    floating = {n for n, x in arguments.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    return {name: xp.asarray(x) if name in floating else x for name, x in arguments.items()}


@pytest.mark.parametrize("slug", ROUTES)
def test_formula_by_two_routes(slug):
    (equation,), rng = select(slug), np.random.default_rng(3)
    for _ in range(5):
        arguments = equation.sample(rng)
        assert same(equation.formula(EXACT, **lifted(EXACT, arguments)), ROUTES[slug](arguments))


IDS = np.array([[1, 0, 1], [2, 1, 1]])
TARGET = np.array([[0, 2], [1, 1]])
GRADIENTS = {
    "next-token": (next_token_loss, next_token_loss_vjp, {"logits": (2, 2, 3)}, {"target": TARGET}),
    "embedding": (
        lambda xp, weight: token_embedding(xp, IDS, weight),
        lambda xp, weight, g: token_embedding_vjp(xp, IDS, weight, g),
        {"weight": (4, 2)},
        {},
    ),
    "head": (lm_head, lm_head_vjp, {"h": (2, 1, 2), "weight": (3, 2)}, {}),
    "head-of-one": (lm_head, lm_head_vjp, {"h": (2,), "weight": (3, 2)}, {}),
    "masked": (masked_lm_loss, masked_lm_loss_vjp, {"logits": (2, 2, 3)}, {"labels": np.array([[-100, 2], [1, -100]])}),
    "per-unit": (perplexity_per_unit, perplexity_per_unit_vjp, {"logits": (2, 3)}, {"target": TARGET[0], "units": 5}),
}


@pytest.mark.parametrize(("formula", "vjp", "shapes", "fixed"), GRADIENTS.values(), ids=GRADIENTS)
def test_gradients_numerically(formula, vjp, shapes, fixed):
    # Central differences: with h = 2^-90 the error is about 2^-180, far below what rounding to fp64 shows.
    arrays = {name: EXACT.asarray(RNG.normal(size=shape)) for name, shape in shapes.items()}
    g = EXACT.asarray(RNG.normal(size=formula(EXACT, **arrays, **fixed).shape))
    gradients = vjp(EXACT, **arrays, **fixed, g=g)
    h = C.ldexp(1, -90)
    for name, gradient in zip(arrays, gradients if isinstance(gradients, tuple) else (gradients,), strict=True):
        for place in np.ndindex(*arrays[name].shape):
            sides = []
            for step in (h, -h):
                moved = arrays[name].value.copy()
                moved[place] += step
                y = formula(EXACT, **{**arrays, name: EXACT.asarray(moved)}, **fixed)
                sides.append(np.sum(g.value * y.value))
            assert float((sides[0] - sides[1]) / (2 * h)) == float(gradient.value[place])


def test_a_lookup_is_exact_and_of_any_shape():
    table = RNG.normal(size=(5, 3))
    for ids in (np.array(4), np.array([], dtype=np.int64), np.array([[0, 4], [4, 1]])):
        assert (floats(token_embedding(XP, ids, XP.asarray(table))) == table[ids]).all()
    xp = RunningError(FORMATS["fp16"])
    looked_up = token_embedding(xp, np.array([0, 0]), xp.asarray([[0.5, 2.0]]))
    assert (looked_up.error == 0).all()


def test_a_row_that_none_read_gets_nothing():
    table, g = XP.asarray(np.zeros((3, 1))), XP.asarray(np.ones((4, 1)))
    assert floats(token_embedding_vjp(XP, np.array([2, 0, 2, 2]), table, g)).tolist() == [[1], [0], [3]]


def test_a_tied_gradient_is_a_sum():
    table, ids = EXACT.asarray(RNG.normal(size=(3, 2))), np.array([2, 0])
    g = EXACT.asarray(RNG.normal(size=(2, 3)))
    h = token_embedding(EXACT, ids, table)
    dh, as_head = lm_head_vjp(EXACT, h, table, g)
    tied = (token_embedding_vjp(EXACT, ids, table, dh) + as_head).value
    step = C.ldexp(1, -90)
    for place in np.ndindex(3, 2):
        sides = []
        for side in (step, -step):
            moved = table.value.copy()
            moved[place] += side
            weight = EXACT.asarray(moved)
            sides.append((g.value * lm_head(EXACT, token_embedding(EXACT, ids, weight), weight).value).sum())
        assert float((sides[0] - sides[1]) / (2 * step)) == float(tied[place])


def test_logits_of_one_position():
    h, weight = RNG.normal(size=2), RNG.normal(size=(3, 2))
    assert same(
        lm_head(EXACT, EXACT.asarray(h), EXACT.asarray(weight)), EXACT.asarray(weight).value @ EXACT.asarray(h).value
    )


def test_a_masked_loss_counts_its_labels_only():
    logits = XP.asarray(RNG.normal(size=(2, 3, 4)))
    nothing = np.full((2, 3), -100)
    assert floats(masked_lm_loss(XP, logits, nothing)) == 0
    assert (floats(masked_lm_loss_vjp(XP, logits, nothing, XP.asarray(1.0))) == 0).all()
    labels = np.array([[0, -100, 3], [-100, -100, 1]])
    assert floats(masked_lm_loss(XP, logits, labels)) == floats(cross_entropy(XP, logits, labels))
    elsewhere = masked_lm_loss(XP, logits, np.where(labels == -100, 2, labels), ignore_index=2)
    assert floats(elsewhere) == floats(masked_lm_loss(XP, logits, labels))
    gradient = floats(masked_lm_loss_vjp(XP, logits, labels, XP.asarray(1.0)))
    assert ((gradient == 0).all(-1) == (labels == -100)).all()


def test_an_empty_text_is_certain():
    assert floats(next_token_loss(XP, XP.asarray(np.zeros((2, 0, 3))), np.zeros((2, 0), dtype=np.int64))).tolist() == [
        0,
        0,
    ]


def test_perplexity_per_token_is_perplexity():
    logits, target = EXACT.asarray(RNG.normal(size=(4, 3))), np.array([0, 2, 1, 1])
    assert same(perplexity_per_unit(EXACT, logits, target, 4), perplexity(EXACT, logits, target).value)
    by_eleven = perplexity_per_unit(EXACT, logits, target, 11).value[()]
    assert float(by_eleven**11) == float(perplexity(EXACT, logits, target).value[()] ** 4)


def test_a_head_multiplies_and_a_lookup_does_not():
    sizes = {"N": 3, "d": 4, "V": 5, "w": 2}
    head, lookup = (
        {name: costs.evaluate(cost(), **sizes) for name, cost in language_costs(operation).items()}
        for operation in ("lm_head", "token_embedding")
    )
    assert head == {"FLOPs": 120, "bytes": 2 * (12 + 20 + 15), "parameters": 20}
    assert lookup == {"FLOPs": 0, "bytes": 2 * 24, "parameters": 20}
