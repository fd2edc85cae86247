"""Losses, embeddings and heads at their edges."""

import numpy as np

from tests.values import EXACT, XP, floats
from veriformer.spec.arithmetic import FORMATS, RunningError
from veriformer.spec.language.lm_head import lm_head, lm_head_vjp
from veriformer.spec.language.masked_lm_loss import masked_lm_loss, masked_lm_loss_vjp
from veriformer.spec.language.next_token_loss import next_token_loss
from veriformer.spec.language.token_embedding import token_embedding, token_embedding_vjp
from veriformer.spec.scores.cross_entropy import cross_entropy

RNG = np.random.default_rng(0)


def same(ours, theirs):
    return floats(ours).tolist() == floats(np.array(theirs, dtype=object)).tolist()


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


def test_logits_of_one_position():
    h, weight, g = (EXACT.asarray(RNG.normal(size=shape)) for shape in ((2,), (3, 2), (3,)))
    dh, dweight = lm_head_vjp(EXACT, h, weight, g)
    assert same(lm_head(EXACT, h, weight), weight.value @ h.value)
    assert same(dh, g.value @ weight.value)
    assert same(dweight, np.outer(g.value, h.value))


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
