"""Laws of beam search, against every text there is."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.arguments import fresh
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.equality import equal, finite
from veriformer.verify.laws.family import check
from veriformer.verify.laws.numbers import number
from veriformer.verify.operations.generation.beam_search.record import (
    Text,
    draw_search,
    every_text,
    exhaustive_width,
    scores,
)
from veriformer.verify.operations.scores.targets import ids
from veriformer.verify.scripts.script import TabularLM, literal
from veriformer.verify.strategies import choice, seeds

_DTYPES = ("fp64", "fp32")


@dataclass(frozen=True)
class Found:
    """Result of a search: its ids, the expression that gives them in a script, and its score."""

    ids: tuple[int, ...]
    expression: str
    score: Observation


def _search(trial: Trial, arguments: Arguments) -> Found:
    return _read(trial, arguments, trial.call(arguments))


def _read(trial: Trial, arguments: Arguments, outcome: Outcome) -> Found:
    """Raise Violation unless the result has the form that the contract promises."""
    value, e = outcome.value, outcome.name
    pair = isinstance(value, tuple | list) and len(value) == 2
    trial.assert_true(pair, "the result is not a pair", f"isinstance({e}, (tuple, list)) and len({e}) == 2")
    text, score = value
    listed = isinstance(text, torch.Tensor) and text.ndim == 1 and not text.is_floating_point()
    said = f"isinstance({e}[0], torch.Tensor) and {e}[0].ndim == 1 and not {e}[0].is_floating_point()"
    trial.assert_true(listed, "the ids are no 1-D tensor of integers", said)
    real = isinstance(score, numbers.Real) or (isinstance(score, torch.Tensor) and score.ndim == 0)
    trial.assert_true(real, "the score is neither a number nor a 0-d tensor", f"torch.as_tensor({e}[1]).ndim == 0")
    found, start = tuple(text.tolist()), tuple(arguments["start"].tolist())
    begins = found[: len(start)] == start and len(start) < len(found) <= arguments["max_length"]
    said = (
        f"{e}[0].tolist()[:{len(start)}] == {list(start)!r} and {len(start)} < len({e}[0]) <= {arguments['max_length']}"
    )
    trial.assert_true(begins, f"{list(found)} does not begin with {list(start)}, or is too short or too long", said)
    number_ = torch.as_tensor(score, dtype=torch.float64).detach()
    return Found(found, e, Observation(number_, f"torch.as_tensor({e}[1], dtype=torch.float64)"))


def _references(trial: Trial, arguments: Arguments) -> tuple[list[Text], Any, Any]:
    """Return every text, with its exact score and the bound."""
    texts, xp = every_text(arguments), over_float64(trial.dtype_name)
    return texts, *xp.judgeable(scores(xp, texts, arguments["length_penalty"]))


def _exhaustive(trial: Trial, arguments: Arguments) -> Arguments:
    return {**arguments, "beam_width": exhaustive_width(arguments) + trial.draw(choice(0, 1, 50))}


def _judge_best(trial: Trial, arguments: Arguments, found: Found) -> Reference:
    """Raise Violation unless the score is the best that there is, and the text one of those that have it."""
    texts, exact, bound = _references(trial, arguments)
    near = exact + bound >= (exact - bound).max()
    reference = Reference(np.asarray(exact.max()), np.asarray(bound[near].max()))
    trial.assert_within_bound(found.score, reference, "the best score")
    best = [list(text) for (text, _), among in zip(texts, near, strict=True) if among]
    said = f"{found.expression}[0].tolist() in {best!r}"
    trial.assert_true(list(found.ids) in best, f"{list(found.ids)} has not that score; {best} have", said)
    return reference


def _judge_own(trial: Trial, arguments: Arguments, found: Found) -> Reference:
    """Raise Violation unless the score is that of the text returned."""
    texts, exact, bound = _references(trial, arguments)
    places = [i for i, (text, _) in enumerate(texts) if text == found.ids]
    listed = [list(text) for text, _ in texts]
    said = f"{found.expression}[0].tolist() in {listed!r}"
    trial.assert_true(bool(places), f"{list(found.ids)} is no text that a search can end with", said)
    reference = Reference(np.asarray(exact[places[0]]), np.asarray(bound[places[0]]))
    trial.assert_within_bound(found.score, reference, "the score of the text returned")
    return reference


def _contract(trial: Trial) -> None:
    _search(trial, draw_search(trial))


def _equation(trial: Trial) -> None:
    if trial.draw(choice(False, True)):
        _wide(trial)
        return
    arguments = _exhaustive(trial, draw_search(trial))
    _judge_best(trial, arguments, _search(trial, arguments))


def _work(s: Mapping[str, int]) -> float:
    return s["tokens"] * s["beams"] * s["depth"] / 4


def _wide(trial: Trial) -> None:
    """Check many tokens, equally distributed at every step, without an end: the best text repeats the likeliest."""
    trial.only_large()
    found = trial.sizes({"tokens": (2, 3000), "beams": (1, 32), "depth": (1, 12)}, _work)
    assert found is not None
    size, rng = found["tokens"], np.random.default_rng(trial.draw(seeds()))
    best, eos = int(rng.integers(size)), int(rng.choice([0, size - 1, int(rng.integers(size))]))
    best = best if best != eos else (best + 1) % size
    w = rng.uniform(1.0, 2.0, size)
    w[best], w[eos] = 3.0, 0.0
    row = torch.as_tensor(np.log(w / w.sum(), where=w > 0, out=np.full(size, -np.inf))).to(trial.dtype)
    start, penalty = (int(rng.integers(size)),), trial.draw(choice(0.0, 1.0, 0.5))
    arguments = {
        "step": TabularLM({}, tuple(row.tolist()), trial.dtype),
        "start": ids(np.array(start)),
        "beam_width": found["beams"],
        "max_length": 1 + found["depth"],
        "eos": eos,
        "length_penalty": penalty,
    }
    text: Text = (*start, *[best] * found["depth"]), (float(row[best]),) * found["depth"]
    result, xp = _search(trial, arguments), over_float64(trial.dtype_name)
    said = f"{result.expression}[0].tolist() == {list(text[0])!r}"
    trial.assert_true(result.ids == text[0], f"{list(result.ids)} is not the likeliest text, {list(text[0])}", said)
    exact, bound = xp.judgeable(scores(xp, [text], penalty))
    trial.assert_within_bound(result.score, Reference(exact[0], bound[0], constant=True), "the best score")


def _width_one(trial: Trial) -> None:
    arguments = {**draw_search(trial, penalties=(0.0,)), "beam_width": 1}
    text = tuple(arguments["start"].tolist())
    while len(text) < arguments["max_length"] and (
        text[-1] != arguments["eos"] or len(text) == len(arguments["start"])
    ):
        text = (*text, int(np.argmax(arguments["step"].row(text))))
    found = _search(trial, arguments)
    said = f"{found.expression}[0].tolist() == {list(text)!r}"
    trial.assert_true(found.ids == text, f"{list(found.ids)} is not greedy; {list(text)} is", said)
    _judge_own(trial, arguments, found)


def _own_score(trial: Trial) -> None:
    arguments = draw_search(trial)
    _judge_own(trial, arguments, _search(trial, arguments))


def _ending(trial: Trial) -> None:
    arguments = draw_search(trial)
    found, eos = _search(trial, arguments), arguments["eos"]
    made = found.ids[len(arguments["start"]) :]
    ended = eos not in made[:-1] and (made[-1] == eos or len(found.ids) == arguments["max_length"])
    t = f"{found.expression}[0].tolist()[{len(arguments['start'])}:]"
    said = f"{eos} not in {t}[:-1] and ({t}[-1] == {eos} or len({found.expression}[0]) == {arguments['max_length']})"
    trial.assert_true(ended, f"{list(found.ids)} does not end in {eos}, or goes on behind it", said)


def exceeds(narrow: torch.Tensor, wide: torch.Tensor) -> torch.Tensor:
    """Return max(score of the narrower beam − score of the wider, 0), in float64."""
    return (narrow.double() - wide.double()).clamp(min=0)


def _wider(trial: Trial) -> None:
    arguments = draw_search(trial)
    narrow, wide = (_search(trial, a) for a in (arguments, _exhaustive(trial, arguments)))
    bounds = [_judge_own(trial, arguments, found).bound for found in (narrow, wide)]
    law = Reference(np.zeros(()), np.asarray(sum(bounds) * (1 + 2.0**-50)), scale=1.0, constant=True)
    trial.assert_within_bound(
        trial.observe(exceeds, narrow.score, wide.score), law, "by how much the narrower beam is better"
    )


def _impossible(trial: Trial) -> None:
    arguments = {**draw_search(trial), "beam_width": trial.draw(choice(50, 3, 1))}
    found = _search(trial, arguments)
    _judge_own(trial, arguments, found)
    finite(trial, found.score, "the score")


def _renamed(table: TabularLM, name: list[int]) -> TabularLM:
    """Return the model with its ids permuted: i becomes name[i]."""

    def row(log_p: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(log_p[name.index(i)] for i in range(len(log_p)))

    rows = {tuple(name[i] for i in text): row(log_p) for text, log_p in table.rows.items()}
    return TabularLM(rows, row(table.otherwise), table.dtype)


def _relabelling(trial: Trial) -> None:
    one = _exhaustive(trial, draw_search(trial))
    step = one["step"]
    name = np.random.default_rng(trial.draw(seeds())).permutation(len(step.otherwise)).tolist()
    start = ids(np.array([name[i] for i in one["start"].tolist()]))
    two = {**one, "step": _renamed(step, name), "start": start, "eos": name[one["eos"]]}
    a, b = _search(trial, one), _search(trial, two)
    of_a, of_b = _judge_best(trial, one, a), _judge_best(trial, two, b)
    equal(trial, a.score, b.score, of_a, of_b, "the score under other names")


def _purity(trial: Trial) -> None:
    arguments = draw_search(trial)
    copies = {key: fresh(value, False) for key, value in arguments.items()}
    first = trial.raw(arguments, copies)
    same = torch.equal(arguments["start"], copies["start"])
    trial.assert_true(same, "start was modified", f"torch.equal(start0, {literal(arguments['start'])})")
    a, b = _read(trial, arguments, first), _read(trial, arguments, trial.raw(arguments, copies))
    said = f"torch.equal({a.expression}[0], {b.expression}[0])"
    trial.assert_true(a.ids == b.ids, "a second search gives another text", said)


def _numpy_numbers(trial: Trial) -> None:
    arguments = _exhaustive(trial, draw_search(trial))
    found = _search(trial, {key: number(value) for key, value in arguments.items()})
    _judge_best(trial, arguments, found)


_LAWS: dict[str, Any] = {
    "contract": _contract,
    "width_one": _width_one,
    "own_score": _own_score,
    "ending": _ending,
    "wider": _wider,
    "impossible": _impossible,
    "relabelling": _relabelling,
    "purity": _purity,
    "numpy_numbers": _numpy_numbers,
}


CHECKS = (
    check("beam_search.equation", _equation, dtypes=_DTYPES, effort=4),
    *(check(f"beam_search.{name}", body, dtypes=_DTYPES) for name, body in _LAWS.items()),
)
