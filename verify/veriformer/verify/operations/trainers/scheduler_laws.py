"""Laws of any schedule of rates: its count, its state, its groups, and its closed form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.equality import difference
from veriformer.verify.laws.family import check
from veriformer.verify.operations.models import decision
from veriformer.verify.scripts.scheduler_ways import drive_any_scheduler
from veriformer.verify.strategies import choice, seeds
from veriformer.verify.targets.target import Target

_LONGEST = 16
"""Steps of a run: some schedules refuse more than their form is built for."""


class SchedulerExample:
    """Example of a schedule: initial rates of some groups, and a number of steps."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.rng = np.random.default_rng(trial.draw(seeds()))
        self.steps: int = trial.draw(st.integers(1, _LONGEST))
        count = trial.draw(choice(1, 2, 3))
        self.rates = [float(2.0 ** self.rng.integers(-8, 0) * self.rng.uniform(0.5, 1.0)) for _ in range(count)]
        self.metrics: list[float] = []
        if getattr(trial.target.operation("lr_scheduler"), "measured", False):
            self.metrics = [float(x) for x in self.rng.integers(1, 4, self.steps)]

    def ask(self, **given: Any) -> Outcome:
        """Run the schedule, on the record."""
        asked = {"rates": self.rates, "steps": self.steps, **({"metrics": self.metrics} if self.metrics else {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.trial.call({**asked, **given})

    def same(self, one: Any, other: Any, what: str) -> None:
        """Raise Violation unless the rates of two runs are the same bits."""
        equal = torch.equal(one.value, other.value)
        self.trial.assert_true(equal, what, f"torch.equal({one.expression}, {other.expression})", about=what)


def _contract(e: SchedulerExample) -> None:
    outcome = e.ask()
    seen, x = outcome.value[2], outcome.item(0)
    finite = bool(x.value.isfinite().all())
    e.trial.assert_true(finite, "a rate is not finite", f"bool({x.expression}.isfinite().all())")
    e.trial.assert_true(not seen, seen[0] if seen else "", f"not {outcome.name}[2]", about="count")


def _resume(e: SchedulerExample) -> None:
    at = int(e.rng.integers(e.steps))
    whole, parted = e.ask(), e.ask(resumed=[at])
    e.same(whole.item(0), parted.item(0), "a schedule that loaded the state gives other rates than one that went on")


def _groups(e: SchedulerExample) -> None:
    e.trial.assume(len(e.rates) > 1)
    whole, i = e.ask().item(0), int(e.rng.integers(len(e.rates)))
    alone = e.ask(rates=[e.rates[i]]).item(0)
    own = type(whole)(whole.value[:, i : i + 1], f"{whole.expression}[:, {i}:{i + 1}]", whole.sources)
    e.same(own, alone, "a group among others has other rates than alone")


def _closed_form(e: SchedulerExample) -> None:
    outcome = e.ask()
    found, closed = outcome.item(0), outcome.item(1)
    distance = (found.value - closed.value).abs().numpy().reshape(-1)
    target, asked = e.trial.target.implementation, {"rates": e.rates, "steps": e.steps}

    def squares(runs: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            moved = [drive_any_scheduler(target, **asked, shaken=seed)[:2] for seed in range(runs)]  # type: ignore[no-untyped-call]
        pairs = [(x - found.value, y - closed.value) for x, y in moved]
        return np.mean([(x.square() + y.square()).numpy().reshape(-1) for x, y in pairs], axis=0)

    bound = decision.decided(distance, squares) if distance.any() else np.zeros(len(distance))
    law = Reference(np.zeros(found.value.shape), bound.reshape(found.value.shape), scale=1.0, constant=True)
    e.trial.assert_within_bound(e.trial.observe(difference, found, closed), law, "recursion and closed form")


def _has_closed_form(target: Target, operation: str, dtype: str) -> str | None:
    """Return why the law of the closed form does not apply; None where it does."""
    try:
        trainer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5, momentum=0.5)
        made = target.operation(operation)(trainer)  # type: ignore[misc]
    except Exception:
        return None
    return None if callable(getattr(made, "_get_closed_form_lr", None)) else "it has no closed form besides"


def _on(body: Callable[[SchedulerExample], None]) -> Callable[[Trial], None]:
    return lambda trial: body(SchedulerExample(trial))


_ROWS: tuple[tuple[str, Callable[[SchedulerExample], None], dict[str, Any]], ...] = (
    ("contract", _contract, {}),
    ("resume", _resume, {}),
    ("groups", _groups, {}),
    ("closed_form", _closed_form, {"applies": _has_closed_form}),
)

CHECKS = tuple(check(f"lr_scheduler.{name}", _on(body), dtypes=("fp64",), **options) for name, body, options in _ROWS)
