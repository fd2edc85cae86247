"""Laws of the causal mask."""

from __future__ import annotations

from typing import Any

import torch

from veriformer.verify.checks.agreement import agrees, has_form
from veriformer.verify.checks.family import check
from veriformer.verify.operations import CAUSAL_MASK
from veriformer.verify.strategies import choice, maybe, sizes
from veriformer.verify.trial import Arguments, Trial


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
    """Each query sees what the query before it saw, and at most one key more."""
    n_q, n_k = trial.draw(sizes(2, 8)), trial.draw(sizes(2, 8))
    m = trial.call({"n_q": n_q, "n_k": n_k}).result
    has_form(trial, m, (n_q, n_k), torch.bool)
    e = m.expression
    kept = bool((m.value[1:] >= m.value[:-1]).all())
    trial.require(kept, "a later query no longer sees a key", f"bool(({e}[1:] >= {e}[:-1]).all())")
    counts = m.value.sum(-1)  # of a bool tensor: integers
    grown = bool((counts[1:] - counts[:-1] <= 1).all())
    trial.require(grown, "a query sees two keys more", f"bool(({e}.sum(-1)[1:] - {e}.sum(-1)[:-1] <= 1).all())")
    last = bool(m.value[-1].any())
    trial.require(last, "the last query sees nothing", f"bool({e}[-1].any())")
    if n_q > 1 and n_k > 1:
        all_seen = bool(m.value.all())
        trial.require(not all_seen, "every query sees every key", f"not bool({e}.all())")


def _fresh(trial: Trial) -> None:
    """A mask belongs to its caller: what is done to it shows in no later one."""
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
    trial.require(right, "a mask that was changed by its caller comes back changed", said)


_LAWS: dict[str, Any] = {"window": _window, "nested": _nested, "fresh": _fresh}

CHECKS = (
    *(check(f"causal_mask.{name}", body) for name, body in _LAWS.items()),
    check("causal_mask.alignment", _alignment, convention="causal.alignment"),
)
