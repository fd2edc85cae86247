"""Laws of gradient accumulation: it does not matter how tokens are split."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.checks.family import check
from veriformer.verify.checks.laws import equal
from veriformer.verify.operations.accumulation import ACCUMULATE_GRADIENTS, draw_accumulation, draw_params
from veriformer.verify.script import literal
from veriformer.verify.strategies import choice, sizes, values
from veriformer.verify.trial import Arguments, Observation, Trial


def _same(trial: Trial, a: Arguments, b: Arguments, what: str) -> None:
    runs = [ACCUMULATE_GRADIENTS.parts(trial.call(x), x) for x in (a, b)]
    references = [ACCUMULATE_GRADIENTS.exact(trial, x, sharp=False) for x in (a, b)]
    for one, other, of_one, of_other in list(zip(*runs, *references, strict=True))[:2]:
        equal(trial, one, other, of_one, of_other, what)


def _rows(trial: Trial) -> tuple[dict[str, Any], torch.Tensor, np.random.Generator]:
    kind = trial.draw(values(("gaussian", "one-signed", "offset", "spread")))
    rng = kind.rng
    params = draw_params(trial, rng)
    d, n = params[0].shape[0], trial.draw(sizes(2, 9))
    rows = trial.tensor(kind.array(n, d + 1))
    return {"params": params, **trial.option("lazily", None, True)}, rows, rng


def _split(rows: torch.Tensor, rng: np.random.Generator) -> list[torch.Tensor]:
    """The rows in parts of any sizes, 0 among them."""
    cuts = sorted(int(cut) for cut in rng.integers(0, len(rows) + 1, int(rng.integers(0, 5))))
    edges = [0, *cuts, len(rows)]
    return [rows[low:high].clone() for low, high in pairwise(edges)]


def _partition(trial: Trial) -> None:
    a, rows, rng = _rows(trial)
    parts, others = _split(rows, rng), [rows, *_split(rows[:0], rng)]
    if trial.draw(st.booleans()):
        others = [rows[:1].clone(), rows[1:].clone()]
    _same(trial, {**a, "micro_batches": parts}, {**a, "micro_batches": others}, "the gradient under another split")


def _duplicates(trial: Trial) -> None:
    a, rows, rng = _rows(trial)
    parts = _split(rows, rng)
    twice = [*parts, *[part.clone() for part in parts]]
    _same(trial, {**a, "micro_batches": parts}, {**a, "micro_batches": twice}, "the gradient of all tokens twice")


def _zero(trial: Trial, observed: Observation, what: str) -> None:
    e = observed.expression
    trial.require(bool((observed.value == 0).all()), f"{what} is not 0", f"bool(({e} == 0).all())")


def _no_tokens(trial: Trial) -> None:
    drawn = draw_accumulation(trial)
    n, tokens = trial.draw(sizes(0, 2)), trial.draw(choice(0, 3))
    hidden = [trial.tensor(np.ones((tokens, len(drawn["params"][0]) + 1))) for _ in range(n)]
    a = {**drawn, "micro_batches": hidden, "masks": [torch.zeros(tokens, dtype=torch.bool) for _ in range(n)]}
    for i, observed in enumerate(ACCUMULATE_GRADIENTS.parts(trial.call(a), a)):
        _zero(trial, observed, f"gradient {i} over no token")


def _unused_parameters(trial: Trial) -> None:
    a, rows, rng = _rows(trial)
    a["params"] = [*a["params"][:2], trial.tensor(rng.standard_normal((2, 3)))]
    outcome = trial.call({**a, "micro_batches": _split(rows, rng)})
    _zero(trial, outcome.item(0, 2), "the gradient of a parameter that is not used")
    shape = tuple(outcome.item(0, 2).value.shape)
    trial.require(shape == (2, 3), f"its shape is {shape}", f"tuple({outcome.name}[0][2].shape) == (2, 3)")


def _grad_untouched(trial: Trial) -> None:
    a = draw_accumulation(trial)
    outcome = trial.call(a)
    for i, p in enumerate(a["params"]):
        seven = torch.full_like(p, 7.0)
        kept = outcome.item(1, i)
        same = torch.equal(kept.value, seven)
        trial.require(
            same, f"the grad of parameter {i} was written", f"torch.equal({kept.expression}, {literal(seven)})"
        )


CHECKS = (
    check("accumulate_gradients.partition", _partition),
    check("accumulate_gradients.duplicates", _duplicates, effort=0.5),
    check("accumulate_gradients.no_tokens", _no_tokens, effort=0.25),
    check("accumulate_gradients.unused_parameters", _unused_parameters, effort=0.25),
    check("accumulate_gradients.grad_untouched", _grad_untouched, effort=0.25),
)
