"""Runs of any optimizer: how they are drawn, and how two of them are compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Floats, Reference, Violation, assert_within_bound
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.models import decision, noise
from veriformer.verify.operations.optimization.optimizers import gradients
from veriformer.verify.operations.trainers.optimizer_subject import Subject, subject
from veriformer.verify.scripts.optimizer_ways import drive_any_optimizer
from veriformer.verify.strategies import choice, seeds, values

Given = dict[str, Any]
Group = tuple[list[int], Given | None]


class OptimizerExample:
    """Example of an optimizer: it draws parameters, gradients and options, runs the optimizer, and compares runs.

    run: a run of all parameters in one group. T: its steps.
    """

    def __init__(self, trial: Trial, *, steps: tuple[int, int] = (2, 8), options: bool = True) -> None:
        self.trial = trial
        self.subject: Subject = subject(trial.target, trial.dtype)
        self.seed: int = trial.draw(seeds())
        self.rng = np.random.default_rng(self.seed)
        self.T: int = trial.draw(st.integers(*steps))
        kind = trial.draw(values())
        self.n: int = trial.draw(choice(2, 3, 1, 4))
        known = self.subject.stepping.shapes
        shapes = [known[int(self.rng.integers(len(known)))] for _ in range(self.n)]
        params = [trial.tensor(self.rng.choice([1.0, 1e-2, 0.0]) * self.rng.standard_normal(s)) for s in shapes]
        grads = [trial.tensor(gradients(trial, kind, i, self.T, s)) for i, s in enumerate(shapes)]
        self.run: Given = {"params": params, "grads": grads}
        if options and trial.draw(choice(False, True)) and self.subject.alternatives:
            self.run["options"] = self.alternative()
        self.run |= {name: True for name in ("closure", "sparse") if getattr(self.subject.stepping, name)}

    def at_least(self, n: int) -> None:
        """Give the example up where there are fewer parameters."""
        self.trial.assume(self.n >= n)

    def alternative(self) -> Given:
        """Draw one of the options with another value."""
        known = self.subject.alternatives
        return dict(known[int(self.rng.integers(len(known)))])

    def some(self, share: float = 0.4) -> list[tuple[int, int]]:
        """Draw pairs of a step and a parameter: some of all, at least one."""
        found = [(t, i) for t in range(self.T) for i in range(self.n) if self.rng.random() < share]
        return found or [(int(self.rng.integers(self.T)), int(self.rng.integers(self.n)))]

    def split(self) -> list[Group]:
        """Draw a split of all parameters, in their order, into two groups without options of their own."""
        cut = int(self.rng.integers(1, self.n))
        return [(list(range(cut)), None), (list(range(cut, self.n)), None)]

    def ask(self, **given: Any) -> Outcome:
        """Run the optimizer, on the record."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.trial.call({**self.run, **given})

    def alone(self, i: int, steps: Sequence[int] | None = None, **given: Any) -> Outcome:
        """Run the optimizer on one parameter alone, with some of its gradients."""
        grads = self.run["grads"][i]
        return self.ask(params=[self.run["params"][i]], grads=[grads if steps is None else grads[list(steps)]], **given)

    # Judging

    def is_not(self, outcome: Outcome, kind: str) -> None:
        """Raise Violation where something of this kind was seen in a run."""
        seen = [text for found, text in outcome.value[1] if found == kind]
        said = f"not [text for kind, text in {outcome.name}[1] if kind == {kind!r}]"
        self.trial.assert_true(not seen, seen[0] if seen else "", said, about=kind)

    def same(self, one: Observation, other: Observation, what: str) -> None:
        """Raise Violation unless two results are the same bits."""
        equal = torch.equal(one.value.nan_to_num(7.5), other.value.nan_to_num(7.5))
        apart = "" if equal else f" (apart by {_apart(one.value, other.value):.3g})"
        said = f"torch.equal({one.expression}.nan_to_num(7.5), {other.expression}.nan_to_num(7.5))"
        self.trial.assert_true(equal, f"{what}{apart}", said, about=what)

    def agree(self, one: Given, other: Given, what: str, order: Sequence[int] | None = None) -> None:
        """Raise Violation unless two runs are the same but for what rounding explains: see ``models/noise.py``.

        order: by parameter of the first, which one of the other it is.
        """
        order = list(order or range(len(one["params"])))
        a, b = self.ask(**one), self.ask(**other)
        pairs = [(a.item(0, i), b.item(0, j)) for i, j in enumerate(order)]
        distance = np.asarray([_norm(x.value.double() - y.value.double()) for x, y in pairs])
        if not np.isfinite(distance).all():
            self.trial.assume(all(bool(x.value.isfinite().all()) == bool(y.value.isfinite().all()) for x, y in pairs))
        bound = np.zeros(len(distance))
        if distance.any():
            spreads = [self._spread(one, range(len(order))), self._spread(other, order)]
            bound = decision.decided(distance, lambda runs: sum(spread(runs) for spread in spreads))  # type: ignore[arg-type, return-value]
        worst = int(np.argmax(np.where(distance > bound, distance, -1.0)))
        size = max(_norm(x.value.double()) for x, _ in pairs)
        self.trial.effective.append(bool(bound[worst] < size) or not distance.any())
        law = Reference(np.zeros(len(distance)), bound, scale=size, constant=True)
        try:
            assert_within_bound(distance, law, self.trial.statistics, what=what, lines=[])
        except Violation as violation:
            x, y = pairs[worst]
            raise Violation(
                f"{what}: apart by {distance[worst]:.3g} where rounding explains {bound[worst]:.3g}",
                about=what,
                lines=[
                    f"distance = ({x.expression}.double() - {y.expression}.double()).norm().item()",
                    f"bound = {float(bound[worst])!r}",
                    'print("distance", distance, "explained by rounding", bound)',
                    'raise SystemExit(0 if distance <= bound else "the two runs disagree")',
                ],
                observed=float(distance[worst]),
                exact=0.0,
                bound=float(bound[worst]),
            ) from violation

    def _spread(self, given: Given, order: Sequence[int]) -> Callable[[int], Floats]:
        """Return a function of the number of runs: each parameter's mean squared noise from roundoff."""
        make = self.subject.make

        def way(target: Any, **asked: Any) -> list[torch.Tensor]:
            found = drive_any_optimizer(target, **asked)[0]  # type: ignore[no-untyped-call]
            return [found[i].reshape(1, -1) for i in order]

        def moved(number: int) -> Any:
            def optimizer(params: Any, **options: Any) -> Any:
                generator = torch.Generator().manual_seed(number)
                for p in (p for x in params for p in (x["params"] if isinstance(x, dict) else [x])):
                    move = torch.rand(p.shape, generator=generator, dtype=torch.float64) * 2 - 1
                    p.data.copy_(p.data.double() * (1 + torch.finfo(p.dtype).eps * move))
                return make(params, **options)

            return SimpleNamespace(optimizer=optimizer)

        asked = {**self.run, **given}
        spread = noise.Spread(way, asked, self.trial.target.implementation, moved, self.seed % 2**31)  # type: ignore[arg-type]
        return spread.squares


def _norm(x: torch.Tensor) -> float:
    return float(x.norm())


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.double() - other.double()).abs().max()) if one.shape == other.shape and one.numel() else np.nan


def optimizer_property(body: Callable[[OptimizerExample], None], **options: Any) -> Callable[[Trial], None]:
    """Return a property test of a trial from one of an example."""
    return lambda trial: body(OptimizerExample(trial, **options))
