"""Gradient accumulation: the squared errors of a linear model, in micro-batches of any size, and its laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.optimization.accumulate_gradients import accumulate_gradients
from veriformer.spec.optimization.updates import zeros
from veriformer.verify.judging.op_info import InvalidCall, OpInfo
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import equal
from veriformer.verify.laws.family import check
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, sizes, values


def _formula(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    w, b, *unused = a["params"]
    sums, counts = [[zeros(xp, p) for p in a["params"]]], [0]
    masks = a.get("masks", [np.ones(batch.shape[0], dtype=bool) for batch in a["micro_batches"]])
    for batch, mask in zip(a["micro_batches"], masks, strict=True):
        x, counts = batch[:, :-1], [*counts, int(mask.sum())]
        error = xp.where(mask, x @ w + b - batch[:, -1], 0)
        sums.append([(error * 2) @ x, xp.sum(error * 2), *[zeros(xp, p) for p in unused]])
    found: list[Any] = accumulate_gradients(xp, sums, counts)
    return found


_RANGES: dict[str, tuple[int, int]] = {"batches": (1, 150), "tokens": (1, 500), "d": (1, 5000)}
"""Smallest and largest number of micro-batches, tokens in one, and width."""

_BATCH = 100
"""Cost of a micro-batch besides its tokens."""


def _work(s: Mapping[str, int]) -> float:
    return s["batches"] * (_BATCH + (s["tokens"] + 2) * s["d"])


def draw_params(trial: Trial, rng: np.random.Generator, width: int | None = None) -> list[torch.Tensor]:
    """Draw w, b, and up to two parameters that the loss does not use."""
    shapes = [(width or trial.draw(sizes(1, 4)),), (), *[(2, 3), ()][: trial.draw(sizes(0, 2))]]
    return [trial.tensor(rng.standard_normal(shape)) for shape in shapes]


def draw_accumulation(trial: Trial) -> Arguments:
    """Draw micro-batches from no token to many, seldom of one size, or none at all; sometimes large, or masked."""
    kind = trial.draw(values())
    large = trial.sizes(_RANGES, _work)
    params = draw_params(trial, kind.rng, large["d"] if large else None)
    a: dict[str, Any] = {"params": params}
    if large:
        counts = [int(n) for n in kind.rng.integers(0, large["tokens"] + 1, large["batches"])]
        rows = kind.array(sum(counts) + 1, large["d"] + 1)[:-1]
        a["micro_batches"] = [batch.clone() for batch in torch.split(trial.tensor(rows), counts)]
    elif trial.draw(choice(False, False, True)):
        a["micro_batches"] = _large(trial, params, kind.rng)
    else:
        counts = trial.draw(st.lists(sizes(0, 5), min_size=0, max_size=5))
        rows = kind.array(sum(counts) + 1, len(params[0]) + 1)[:-1] * kind.rng.choice([1.0, 3.0])
        a["micro_batches"] = [batch.clone() for batch in torch.split(trial.tensor(rows), counts)] if counts else []
    if trial.draw(choice(False, True)):
        a["masks"] = [_mask(kind.rng, len(batch)) for batch in a["micro_batches"]]
    return a | trial.option("counted", None, "int64", "float32", "int32") | trial.option("lazily", None, True)


def _large(trial: Trial, params: list[torch.Tensor], rng: np.random.Generator) -> list[torch.Tensor]:
    """Draw tokens whose gradients have one sign: their sum leaves the range of fp16, each batch's own does not.

    Each is 2 (x · w + b − y) x with x up to 2^11, and y so far from the rest that the losses stay small.
    """
    d, n = len(params[0]), int(rng.integers(16, 24))
    params[0] = trial.tensor(2.0**-11 * rng.uniform(-1.0, 1.0, d) / d)
    params[1] = trial.tensor(rng.uniform(-1.0, 1.0))
    rows = np.concatenate([2.0**11 * rng.uniform(0.5, 1.0, (n, d)), -rng.uniform(4.0, 5.0, (n, 1))], axis=1)
    return [batch.clone() for batch in torch.split(trial.tensor(rows), 2)]


def _mask(rng: np.random.Generator, tokens: int) -> torch.Tensor:
    """Draw the mask of counted tokens of a micro-batch: some, all or none."""
    return torch.as_tensor(rng.random(tokens) < rng.choice([0.5, 1.0, 0.0]))


def _ordinary(trial: Trial) -> Arguments:
    params = [trial.tensor([1.0, -0.5]), trial.tensor(0.25)]
    batches = [[[1.0, 2.0, 0.5], [0.0, -1.0, 1.0]], [[2.0, 0.5, -1.0]]]
    return {"params": params, "micro_batches": [trial.tensor(batch) for batch in batches]}


def _refusals(trial: Trial) -> Iterator[InvalidCall]:
    good = _ordinary(trial)
    yield InvalidCall("no parameters", {**good, "params": None}, ("params",))
    yield InvalidCall("no micro-batches", {**good, "micro_batches": None}, ("micro_batches",))
    yield InvalidCall("no loss", {**good, "loss_fn": None}, ("loss_fn",))
    yield InvalidCall("a number for a loss", {**good, "loss_fn": 1.0}, ("loss_fn",))


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    kind = trial.draw(values(("gaussian", "one-signed")))
    params = [trial.tensor(kind.rng.standard_normal(shape)) for shape in ((2,), ())]
    first, second = trial.tensor(kind.array(2, 3)), trial.tensor(1.0 + kind.array(1, 3))
    a: Arguments = {"params": params, "micro_batches": [first, second]}
    return a, {
        "w": {**a, "params": [perturbed(trial, params[0], kind.rng), params[1]]},
        "the first micro-batch": {**a, "micro_batches": [perturbed(trial, first, kind.rng), second]},
        "the last micro-batch": {**a, "micro_batches": [first, perturbed(trial, second, kind.rng)]},
        "the number of micro-batches": {**a, "micro_batches": [first]},
    }


def _parts(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [outcome.item(0, i) for i in range(len(arguments["params"]))]


ACCUMULATE_GRADIENTS = OpInfo(
    name="accumulate_gradients",
    sample=draw_accumulation,
    sample_basic=_ordinary,
    formulas=(_formula,),
    invalid_calls=_refusals,
    argument_perturbations=_changes,
    parts=_parts,
)


def _same(trial: Trial, a: Arguments, b: Arguments, what: str) -> None:
    runs = [ACCUMULATE_GRADIENTS.parts(trial.call(x), x) for x in (a, b)]
    references = [ACCUMULATE_GRADIENTS.exact(trial, x, use_exact_oracle=False) for x in (a, b)]
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
    """Return the rows in parts of any sizes, 0 among them."""
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
    trial.assert_true(bool((observed.value == 0).all()), f"{what} is not 0", f"bool(({e} == 0).all())")


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
    trial.assert_true(shape == (2, 3), f"its shape is {shape}", f"tuple({outcome.name}[0][2].shape) == (2, 3)")


def _grad_untouched(trial: Trial) -> None:
    a = draw_accumulation(trial)
    outcome = trial.call(a)
    for i, p in enumerate(a["params"]):
        seven = torch.full_like(p, 7.0)
        kept = outcome.item(1, i)
        same = torch.equal(kept.value, seven)
        trial.assert_true(
            same, f"the grad of parameter {i} was written", f"torch.equal({kept.expression}, {literal(seven)})"
        )


CHECKS = (
    check("accumulate_gradients.partition", _partition),
    check("accumulate_gradients.duplicates", _duplicates, effort=0.5),
    check("accumulate_gradients.no_tokens", _no_tokens, effort=0.25),
    check("accumulate_gradients.unused_parameters", _unused_parameters, effort=0.25),
    check("accumulate_gradients.grad_untouched", _grad_untouched, effort=0.25),
)
