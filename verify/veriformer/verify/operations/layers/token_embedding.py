"""Token embeddings: their record and their laws."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, gradients_agree
from veriformer.verify.laws.equality import finite
from veriformer.verify.laws.family import check
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.layers.vocabulary import equals_exactly, large_table, table
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, leading_shapes, sizes, values

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.uint8)


def draw_ids(trial: Trial, shape: tuple[int, ...], size: int) -> torch.Tensor:
    """Draw ids of any integer dtype, some of them often."""
    rng = trial.draw(values()).rng
    few = rng.integers(0, size, max(1, size // 2))
    ids = rng.choice(few, shape) if trial.draw(st.booleans()) else rng.integers(0, size, shape)
    wide = [dtype for dtype in (*_INTEGERS, torch.uint8) if size - 1 <= torch.iinfo(dtype).max]
    return torch.as_tensor(np.asarray(ids)).to(trial.draw(choice(*wide)))


def draw_token_embedding(trial: Trial) -> Arguments:
    """Draw ids of any shape, scalar and empty too, or as many as rows, where uint8 ids must not index as a mask."""
    large = large_table(trial)
    if large is not None:
        lead, weight = large
        return {"ids": draw_ids(trial, lead, weight.shape[0]), "weight": weight}
    weight = table(trial) * trial.draw(choice(1.0, 1.0, 1024.0))  # rows are copied, however long they are
    shape = trial.draw(choice(None, None, None, weight.shape[:1], weight.shape[:1]))
    shape = trial.draw(leading_shapes()) if shape is None else tuple(shape)
    return {"ids": draw_ids(trial, shape, weight.shape[0]), "weight": weight}


def _ordinary_ids(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian",)))
    ids = torch.as_tensor(kind.rng.integers(0, 5, (2, trial.draw(sizes(1, 4)))))
    return {"ids": ids, "weight": trial.tensor(kind.array(5, 3))}


def _changed_ids(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a = _ordinary_ids(trial)
    ids = torch.zeros_like(a["ids"])
    b = {**a, "ids": ids}
    other = a["weight"].clone()
    other[0] += 1.5
    return b, {"ids": {**b, "ids": ids + 1}, "weight": {**b, "weight": other}}


TOKEN_EMBEDDING = operation(
    "token_embedding",
    sample=draw_token_embedding,
    sample_basic=_ordinary_ids,
    argument_perturbations=_changed_ids,
    sample_large=draw_token_embedding,
    use_exact_oracle=False,
    structural_dtypes=("fp32", "bf16"),
)


def _lookup(trial: Trial) -> None:
    arguments = draw_token_embedding(trial)
    rows = arguments["weight"][arguments["ids"].long()]
    if rows.numel() == 0:
        rows = torch.empty(rows.shape, dtype=rows.dtype)
    equals_exactly(trial, trial.call(arguments).result, rows, "the result is not a copy of the rows")


def _repeated(trial: Trial) -> None:
    """Check a few tokens of a larger vocabulary, each repeated many times."""
    weight = trial.tensor(trial.draw(values(("gaussian",))).array(9, 3))
    few = draw_ids(trial, (trial.draw(sizes(6, 30)),), trial.draw(choice(2, 1, 3)))
    arguments = {"ids": few + trial.draw(choice(0, 3, 6)), "weight": weight}
    cotangent = draw_cotangent(trial, (*few.shape, 3))
    outcome = trial.call(arguments, wrt=("weight",), cotangent=cotangent)
    gradients_agree(
        trial, outcome, TOKEN_EMBEDDING.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)
    )
    agrees(trial, TOKEN_EMBEDDING, arguments, outcome, TOKEN_EMBEDDING.exact(trial, arguments, use_exact_oracle=False))
    unread = torch.ones(9, dtype=torch.bool)
    unread[arguments["ids"].long()] = False
    g = outcome.gradient("weight")
    said = f"not bool({g.expression}[{literal(unread)}].any())"
    trial.assert_true(not bool(g.value[unread].any()), "a token that was not read has a gradient", said)


def _repeated_range(trial: Trial) -> None:
    """Check cotangents of one token whose partial sums leave the range of fp16, and whose total does not."""
    n, d = trial.draw(choice(2, 3, 5)), trial.draw(sizes(1, 3))
    rng = trial.draw(values()).rng
    size = rng.integers(30000, 60000, (n, d))
    g = trial.tensor(np.concatenate((size, -size, rng.integers(-9, 10, (1, d)))))
    arguments = {"ids": torch.full((2 * n + 1,), 1), "weight": trial.tensor(rng.standard_normal((3, d)))}
    outcome = trial.call(arguments, wrt=("weight",), cotangent=g)
    agrees(trial, TOKEN_EMBEDDING, arguments, outcome, TOKEN_EMBEDDING.exact(trial, arguments, use_exact_oracle=False))
    gradients_agree(trial, outcome, TOKEN_EMBEDDING.exact_gradients(trial, arguments, g, use_exact_oracle=False))
    finite(trial, outcome.gradient("weight"), "a sum over repeated tokens")


CHECKS = (
    check("token_embedding.lookup", _lookup),
    check("token_embedding.repeated", _repeated),
    check("token_embedding.range", _repeated_range, dtypes=("fp16",)),
)
