"""Laws of token embeddings and of the head of a language model."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.checks.agreement import agrees, gradients_agree
from veriformer.verify.checks.equation import draw_cotangent
from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import finite
from veriformer.verify.checks.networks import sums
from veriformer.verify.judge import Reference
from veriformer.verify.operations import LM_HEAD, TOKEN_EMBEDDING
from veriformer.verify.operations.embeddings import draw_ids, draw_token_embedding, table
from veriformer.verify.script import literal
from veriformer.verify.strategies import choice, leading_shapes, sizes, values
from veriformer.verify.trial import Arguments, Observation, Trial


def _equals(trial: Trial, y: Observation, wanted: torch.Tensor, message: str) -> None:
    trial.require(torch.equal(y.value, wanted), message, f"torch.equal({y.expression}, {literal(wanted)})")


def _lookup(trial: Trial) -> None:
    arguments = draw_token_embedding(trial)
    rows = arguments["weight"][arguments["ids"].long()]
    if rows.numel() == 0:
        rows = torch.empty(rows.shape, dtype=rows.dtype)
    _equals(trial, trial.call(arguments).result, rows, "the result is not a copy of the rows")


def _repeated(trial: Trial) -> None:
    """A few tokens of a larger vocabulary, each many times."""
    weight = trial.tensor(trial.draw(values(("gaussian",))).array(9, 3))
    few = draw_ids(trial, (trial.draw(sizes(6, 30)),), trial.draw(choice(2, 1, 3)))
    arguments = {"ids": few + trial.draw(choice(0, 3, 6)), "weight": weight}
    cotangent = draw_cotangent(trial, (*few.shape, 3))
    outcome = trial.call(arguments, wrt=("weight",), cotangent=cotangent)
    gradients_agree(trial, outcome, TOKEN_EMBEDDING.exact_gradients(trial, arguments, cotangent, sharp=False))
    agrees(trial, TOKEN_EMBEDDING, arguments, outcome, TOKEN_EMBEDDING.exact(trial, arguments, sharp=False))
    unread = torch.ones(9, dtype=torch.bool)
    unread[arguments["ids"].long()] = False
    g = outcome.gradient("weight")
    said = f"not bool({g.expression}[{literal(unread)}].any())"
    trial.require(not bool(g.value[unread].any()), "a token that was not read has a gradient", said)


def _repeated_range(trial: Trial) -> None:
    """Cotangents of one token that leave the range of fp16 together before they come back."""
    n, d = trial.draw(choice(2, 3, 5)), trial.draw(sizes(1, 3))
    rng = trial.draw(values()).rng
    size = rng.integers(30000, 60000, (n, d))
    g = trial.tensor(np.concatenate((size, -size, rng.integers(-9, 10, (1, d)))))
    arguments = {"ids": torch.full((2 * n + 1,), 1), "weight": trial.tensor(rng.standard_normal((3, d)))}
    outcome = trial.call(arguments, wrt=("weight",), cotangent=g)
    agrees(trial, TOKEN_EMBEDDING, arguments, outcome, TOKEN_EMBEDDING.exact(trial, arguments, sharp=False))
    gradients_agree(trial, outcome, TOKEN_EMBEDDING.exact_gradients(trial, arguments, g, sharp=False))
    finite(trial, outcome.gradient("weight"), "a sum over repeated tokens")


def _judged(trial: Trial, arguments: Arguments) -> tuple[Observation, Reference]:
    reference = LM_HEAD.exact(trial, arguments, sharp=False)[0]
    outcome = trial.call(arguments)
    agrees(trial, LM_HEAD, arguments, outcome, [reference])
    return outcome.result, reference


def _linearity(trial: Trial) -> None:
    weight = table(trial)
    shape = (*trial.draw(leading_shapes(2, 3)), weight.shape[1])
    rng = trial.draw(values()).rng
    a, b = (trial.tensor(rng.integers(-6, 7, shape) / 4) for _ in range(2))
    found = [_judged(trial, {"h": h, "weight": weight}) for h in (a, b, a + b)]
    size = max(float(np.abs(reference.exact).max(initial=0.0)) for _, reference in found)
    bound = sum(reference.bound for _, reference in found) + 2.0**-50 * size
    law = Reference(np.zeros(np.shape(bound)), np.asarray(bound), scale=size, constant=True)
    trial.judge(trial.observe(sums, *(y for y, _ in found)), law, "logits of two features less those of their sum")
    zero = trial.call({"h": torch.zeros_like(a), "weight": weight}).result
    _equals(trial, zero, torch.zeros_like(found[0][0].value), "the logits of zero are not zero")


def _one_hot(trial: Trial) -> None:
    weight = table(trial)
    h: dict[str, Any] = {"h": torch.eye(weight.shape[1], dtype=trial.dtype), "weight": weight}
    _equals(trial, trial.call(h).result, weight.mT.contiguous(), "a feature alone does not read its column")


def _products_range(trial: Trial) -> None:
    """Products that leave the range of fp16, in pairs that cancel; one row of the table has none of them."""
    n, pairs, size = trial.draw(sizes(1, 3)), trial.draw(sizes(1, 3)), trial.draw(sizes(1, 4))
    rng = trial.draw(values()).rng
    h, w = rng.integers(256, 300, (n, pairs)), rng.integers(256, 300, (size, pairs))
    features = np.concatenate((h, h, rng.integers(2, 5, (n, 2))), -1)
    rows = np.concatenate((w, -w, rng.integers(-3, 4, (size, 2))), -1)
    plain = np.concatenate((np.zeros((1, 2 * pairs)), rng.integers(2, 5, (1, 2))), -1)
    arguments = {"h": trial.tensor(features), "weight": trial.tensor(np.concatenate((rows, plain)))}
    result, _ = _judged(trial, arguments)
    finite(trial, result, "an inner product")


CHECKS = (
    check("token_embedding.lookup", _lookup),
    check("token_embedding.repeated", _repeated),
    check("token_embedding.range", _repeated_range, dtypes=("fp16",)),
    check("lm_head.linearity", _linearity, dtypes=("fp64", "fp32")),
    check("lm_head.one_hot", _one_hot),
    check("lm_head.range", _products_range, dtypes=("fp16",)),
)
