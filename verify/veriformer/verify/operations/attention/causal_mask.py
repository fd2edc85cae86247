"""The causal mask: its record and its laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees, has_form
from veriformer.verify.laws.family import check
from veriformer.verify.operations.derived import operation
from veriformer.verify.strategies import choice, extent, maybe, sizes
from veriformer.verify.targets.claims import Claims


def alignment(claims: Claims) -> dict[str, Any]:
    """Return the claimed alignment of the causal edge: by default at the last key for the last query."""
    return {"alignment": claims.convention("causal.alignment")}


def _causal_mask(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [np.asarray(causal_mask(**a))]


def draw_causal_mask(trial: Trial) -> Arguments:
    """Draw lengths from 0, either the longer; a window around the lengths, or none."""
    large = trial.sizes({"n_q": (1, 1500), "n_k": (1, 6000)}, lambda s: s["n_q"] * s["n_k"], (("n_q", "n_k"),))
    n_q, n_k = (large["n_q"], large["n_k"]) if large else (trial.draw(sizes(0, 9)), trial.draw(sizes(0, 9)))
    window = trial.draw(maybe(extent(1, n_k + 1) if large else sizes(1, 11)))
    return {"n_q": n_q, "n_k": n_k} if window is None else {"n_q": n_q, "n_k": n_k, "window": window}


def _ordinary(trial: Trial) -> Arguments:
    n = trial.draw(sizes(2))
    return {"n_q": n, "n_k": n}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    n = trial.draw(sizes(3))
    a: Arguments = {"n_q": n, "n_k": n + 1}
    return a, {"window": {**a, "window": 2}}


CAUSAL_MASK = operation(
    "causal_mask",
    sample=draw_causal_mask,
    sample_basic=_ordinary,
    formulas=(_causal_mask,),
    convention_kwargs=alignment,
    argument_perturbations=_changes,
    sample_large=draw_causal_mask,
    result_dtype=lambda trial, arguments, part: torch.bool,
)


def _agree(trial: Trial, arguments: Arguments) -> None:
    agrees(trial, CAUSAL_MASK, arguments, trial.call(arguments), CAUSAL_MASK.exact(trial, arguments))


def _alignment(trial: Trial) -> None:
    n_q = trial.draw(sizes(1, 8))
    n_k = trial.draw(choice(*(n for n in range(1, 9) if n != n_q)))
    window = trial.draw(maybe(sizes(1, 9)))
    arguments: Arguments = {"n_q": n_q, "n_k": n_k}
    _agree(trial, arguments if window is None else {**arguments, "window": window})


def _window(trial: Trial) -> None:
    window = trial.draw(sizes(1, 5))
    n_k = window + trial.draw(choice(1, 0, -1, 2, 5))
    n_q = max(0, n_k - trial.draw(choice(0, 1, 2)))
    _agree(trial, {"n_q": n_q, "n_k": max(0, n_k), "window": window})


def _nested(trial: Trial) -> None:
    """Each query sees the keys of the query before it, and at most one key more."""
    n_q, n_k = trial.draw(sizes(2, 8)), trial.draw(sizes(2, 8))
    m = trial.call({"n_q": n_q, "n_k": n_k}).result
    has_form(trial, m, (n_q, n_k), torch.bool)
    e = m.expression
    kept = bool((m.value[1:] >= m.value[:-1]).all())
    trial.assert_true(kept, "a later query no longer sees a key", f"bool(({e}[1:] >= {e}[:-1]).all())")
    counts = m.value.sum(-1)  # of a bool tensor: integers
    grown = bool((counts[1:] - counts[:-1] <= 1).all())
    trial.assert_true(grown, "a query sees two keys more", f"bool(({e}.sum(-1)[1:] - {e}.sum(-1)[:-1] <= 1).all())")
    last = bool(m.value[-1].any())
    trial.assert_true(last, "the last query sees nothing", f"bool({e}[-1].any())")
    if n_q > 1 and n_k > 1:
        all_seen = bool(m.value.all())
        trial.assert_true(not all_seen, "every query sees every key", f"not bool({e}.all())")


def _fresh(trial: Trial) -> None:
    """A mask belongs to its caller: writing to it changes no later mask."""
    n_q, n_k = trial.draw(sizes(1, 6)), trial.draw(sizes(1, 6))
    arguments: Arguments = {"n_q": n_q, "n_k": n_k}
    first = trial.call(arguments)
    has_form(trial, first.result, (n_q, n_k), torch.bool)
    first.result.value.logical_not_()
    again = trial.call(arguments).result
    exact = CAUSAL_MASK.exact(trial, arguments)[0].exact.astype(bool)
    right = torch.equal(again.value, torch.as_tensor(exact))
    made = f"target.causal_mask({n_q}, {n_k})"
    said = f"{first.name}.logical_not_() is not None and torch.equal({made}, torch.tensor({exact.tolist()!r}))"
    trial.assert_true(right, "a mask that was changed by its caller comes back changed", said)


_LAWS: dict[str, Any] = {"window": _window, "nested": _nested, "fresh": _fresh}


CHECKS = (
    *(check(f"causal_mask.{name}", body) for name, body in _LAWS.items()),
    check("causal_mask.alignment", _alignment, convention="causal.alignment"),
)
