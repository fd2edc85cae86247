"""Laws shared by top-k, top-p and greedy choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.operations.generation.filters import draw_logits, undecided
from veriformer.verify.operations.generation.top_k_filter.record import TOP_K_FILTER
from veriformer.verify.operations.generation.top_p_filter.record import TOP_P_FILTER
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import seeds, sizes, widths

Options = Callable[[Trial, torch.Tensor], dict[str, Any]]


_FILTERS = {operation.name: operation for operation in (TOP_K_FILTER, TOP_P_FILTER)}


def draw_rng(trial: Trial) -> np.random.Generator:
    """Draw a generator of any seed."""
    return np.random.default_rng(trial.draw(seeds()))


def distinct_scores(trial: Trial) -> torch.Tensor:
    """Draw rows of different integers, so that twice each and one more is exact in every dtype."""
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    return trial.tensor(np.array([draw_rng(trial).permutation(3 * m)[:m] - m for _ in range(n)]))


def tied_scores(trial: Trial) -> torch.Tensor:
    """Draw rows of few integers, which tie; of different ones for a target that does not say what it does then."""
    if trial.claims.deviates("choice.ties"):
        return distinct_scores(trial)
    n, m = trial.draw(sizes(1, 4)), trial.draw(widths())
    return trial.tensor(draw_rng(trial).integers(-2, 3, (n, m)))


def filtered(trial: Trial, arguments: Arguments, what: str = "the result") -> Observation:
    """Return the result, which agrees with the formula and holds every score as it was given or −∞, one of them at
    least.
    """
    z, outcome = arguments["logits"], trial.call(arguments)
    y, operation = outcome.result, _FILTERS[trial.operation]
    agrees(trial, operation, arguments, outcome, operation.exact(trial, arguments, use_exact_oracle=False))
    e, same = y.expression, bool(((y.value == z) | (y.value == -torch.inf)).all())
    given = "" if same else literal(z)  # written out only where it is told
    trial.assert_true(
        same, f"{what} holds a score that was not given", f"bool((({e} == {given}) | ({e} == -inf)).all())"
    )
    some = bool((y.value > -torch.inf).any(-1).all())
    trial.assert_true(some, f"{what} keeps nothing", f"bool(({e} > -inf).any(-1).all())")
    return y


def keeps_same_set(trial: Trial, a: Observation, b: Observation, order: list[int] | None, message: str) -> None:
    """Raise Violation unless two results keep the same, the first with its columns in another order."""
    moved, said = (a.value, a.expression) if order is None else (a.value[..., order], f"{a.expression}[..., {order!r}]")
    same = bool(((moved > -torch.inf) == (b.value > -torch.inf)).all())
    trial.assert_true(same, message, f"bool((({said} > -inf) == ({b.expression} > -inf)).all())")


def keeps_within(trial: Trial, a: Observation, b: Observation, message: str) -> None:
    """Raise Violation unless the second result keeps whatever the first keeps."""
    inside = bool(((a.value == -torch.inf) | (b.value > -torch.inf)).all())
    trial.assert_true(inside, message, f"bool((({a.expression} == -inf) | ({b.expression} > -inf)).all())")


def untouched_law(options: Options) -> Callable[[Trial], None]:
    """Return the law that kept scores are unchanged."""

    def body(trial: Trial) -> None:
        z = draw_logits(trial)
        filtered(trial, {"logits": z, **options(trial, z)})

    return body


def permutation_law(options: Options) -> Callable[[Trial], None]:
    """Return the law: a permutation of the tokens permutes the kept ones."""

    def body(trial: Trial) -> None:
        z = distinct_scores(trial)
        given = options(trial, z)
        order = draw_rng(trial).permutation(z.shape[-1]).tolist()
        if "p" in given:
            trial.assume(not undecided(over_float64(trial.dtype_name), lifted_scores(trial, z), given["p"]).any())
        a, b = (filtered(trial, {"logits": x, **given}) for x in (z, z[..., order]))
        keeps_same_set(trial, a, b, order, "tokens in another order are not kept alike")

    return body


def lifted_scores(trial: Trial, z: torch.Tensor) -> Any:
    """Return the scores in running-error arithmetic over float64."""
    return over_float64(trial.dtype_name).asarray(z.double().numpy())
