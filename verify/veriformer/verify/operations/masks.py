"""The causal mask as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.verify.claims import Claims
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.strategies import choice, maybe, sizes
from veriformer.verify.trial import Arguments, Trial


def alignment(claims: Claims) -> dict[str, Any]:
    """Where the causal edge lies: at the last key for the last query, unless the target claims otherwise."""
    return {"alignment": claims.convention("causal.alignment")}


def _causal_mask(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [np.asarray(causal_mask(**a))]


def draw_causal_mask(trial: Trial) -> Arguments:
    """Lengths from 0, either the longer; a window around the lengths, or none."""
    n_q, n_k = trial.draw(sizes(0, 9)), trial.draw(sizes(0, 9))
    window = trial.draw(maybe(sizes(1, 11)))
    return {"n_q": n_q, "n_k": n_k} if window is None else {"n_q": n_q, "n_k": n_k, "window": window}


def _long(trial: Trial) -> Arguments:
    n_q, n_k = trial.draw(choice((300, 300), (70, 513), (513, 70), (1, 4999)))
    return {"n_q": n_q, "n_k": n_k, **trial.option("window", None, 257, 65)}


def _ordinary(trial: Trial) -> Arguments:
    n = trial.draw(sizes(2))
    return {"n_q": n, "n_k": n}


def _bad_sizes(trial: Trial) -> Iterator[Refusal]:
    n = trial.draw(sizes())
    yield Refusal("a negative number of queries", {"n_q": -n, "n_k": n}, ("n_q",))
    yield Refusal("a negative number of keys", {"n_q": n, "n_k": -n}, ("n_k",))
    yield Refusal("an empty window", {"n_q": n, "n_k": n, "window": 0}, ("window",))
    yield Refusal("a bool for a length", {"n_q": True, "n_k": n}, ("n_q",))
    yield Refusal("a bool for a window", {"n_q": n, "n_k": n, "window": True}, ("window",))
    yield Refusal("a negative window", {"n_q": n, "n_k": n, "window": -n}, ("window",))


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    n = trial.draw(sizes(3))
    a: Arguments = {"n_q": n, "n_k": n + 1}
    return a, {"window": {**a, "window": 2}}


CAUSAL_MASK = Operation(
    name="causal_mask",
    draw=draw_causal_mask,
    ordinary=_ordinary,
    formulas=(_causal_mask,),
    refusals=_bad_sizes,
    reading=alignment,
    changes=_changes,
    long=_long,
    result_dtype=lambda trial, arguments, part: torch.bool,
)
