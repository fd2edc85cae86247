"""The survey of a row: some examples of its property, each run to its end without anything made smaller."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from functools import partial

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis.control import BuildContext
from hypothesis.errors import HypothesisException, StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.data import ConjectureData

from veriformer.verify.catalogue.example import judge
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.features import present
from veriformer.verify.contract.ordinary import is_ordinary
from veriformer.verify.examples import EXAMPLES_PER_SEED, number, prepared, without_constants
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.evidence import Example, failing, gradients_in, signature
from veriformer.verify.judging import global_state, isolation
from veriformer.verify.judging.counterexample import counterexample, size
from veriformer.verify.judging.exceptions import Ended
from veriformer.verify.judging.judge import Reference, RunStatistics, Violation, ratios
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.targets.seeding import seed_generators
from veriformer.verify.targets.target import Target

_WAIT = 6.0
"""Wall-clock limit of a survey, as a multiple of its own time, on a busy machine or with a target that waits."""


class _Enough(Ended):
    """The time of this survey is over, or its examples are all there."""


class _Watched(Trial):
    """A trial that knows the features of its calls, and is given up where one of them meets a condition left out."""

    def __init__(self, row: CheckRun, target: Target, data: st.DataObject, without: Sequence[Condition]) -> None:
        super().__init__(target, row.check.operation, row.check.positional, row.dtype, row.device, data)
        self.without = without
        self.only_ordinary = False
        self.ordinary = True
        self.met: list[frozenset[str]] = []
        self.telling: set[str] = set()

    def notice(
        self, operation: str, arguments: Arguments, wrt: tuple[str, ...], cotangent: torch.Tensor | None
    ) -> None:
        """Note the features of a call; give the example up where it is one of those left out."""
        names = present(operation, arguments, dtype=self.dtype_name, gradients=bool(wrt))
        self.assume(not any(condition.met((names,)) for condition in self.without))
        self.ordinary &= is_ordinary(operation, names, arguments, cotangent)
        self.assume(self.ordinary or not self.only_ordinary)
        self.met.append(names)

    def assert_within_bound(self, observed: Observation, reference: Reference, what: str = "result") -> None:
        """Record the gradients that are judged, then assert; a gradient that is 0 wherever it is judged, as over a
        single key, cannot be found missing."""
        if (np.abs(reference.exact) > reference.bound).any():
            self.telling |= set(gradients_in(observed.expression))
        super().assert_within_bound(observed, reference, what)


def survey(
    row: CheckRun,
    target: Target,
    seed: str,
    *,
    examples: int,
    seconds: float,
    without: Sequence[Condition] = (),
    together: RunStatistics | None = None,
    only_ordinary: bool = False,
    until_failed: int = 0,
) -> list[Example]:
    """Draw up to so many examples of a row within a time limit, without those that meet a condition in ``without``.

    The time is the processor's, from the end of the first example: what that loads is no slowness of the target.

    With the seed of a run the first are those that the row itself began with. together: gathers what a row is judged by
    whose examples are judged together. only_ordinary: whether examples with other calls are left out. until_failed:
    examples that are drawn at most while none has failed, in a time that grows with their number.
    """
    found: list[Example] = []
    until = math.inf if seconds > 0 else 0.0

    def enough() -> bool:
        most, longer = examples, 0.0
        if until_failed > examples and not failing(found):
            most, longer = until_failed, seconds * (until_failed / examples - 1)
        return len(found) >= most or time.process_time() > until + longer

    def one(data: st.DataObject) -> None:
        nonlocal until
        if enough():
            raise _Enough
        trial = _Watched(row, target, data, without)
        trial.statistics = trial.statistics if together is None else together
        trial.only_ordinary = only_ordinary
        try:
            example = _example(trial, row, data.conjecture_data)
        finally:  # also where it was given up: where all are, the time goes by too
            until = min(until, time.process_time() + seconds)
        if example is not None:
            found.append(example)

    seed_generators(number(f"{seed}|{row.key}|global"))
    tell = target.changed(row.check.operation)
    with (
        contextlib.suppress(Ended),
        isolation.time_limit(_WAIT * (seconds + 1), may_kill=False),
        global_state.guarded(global_state.OF_ROWS, tell),
        global_state.environment(tell),
        global_state.streams(),
    ):
        for burst in range(3 * -(-max(examples, until_failed) // EXAMPLES_PER_SEED)):  # some are given up
            with contextlib.suppress(HypothesisException), without_constants():
                prepared(one, f"{seed}|{row.key}|{burst * EXAMPLES_PER_SEED}", EXAMPLES_PER_SEED, further=burst > 0)()
    return found


def again(example: Example, target: Target) -> Example | None:
    """Repeat an example on another target; None where equal draws give that target other calls."""
    data = ConjectureData.for_choices(example.choices)
    trial = _Watched(example.row, target, st.DataObject(data), ())
    try:
        with BuildContext(data, wrapped_test=again), without_constants(), global_state.streams():
            found = _example(trial, example.row, data)
    except (StopTest, HypothesisException):
        return None
    return found if found is not None and _of_any_format(found) == _of_any_format(example) else None


def _of_any_format(example: Example) -> list[frozenset[str]]:
    """Return the features of an example's calls without the format that they are judged by."""
    return [call.difference(dtypes.NAMES) for call in example.calls]


def _example(trial: _Watched, row: CheckRun, data: ConjectureData) -> Example | None:
    """Run one example and return it; None where an error of the suite's own ended it."""
    begun = len(data.choices)  # what was drawn before this example is no part of it
    violation = None
    try:
        judge(row.check, trial)
    except Violation as raised:
        violation = raised
    except (UnsatisfiedAssumption, HypothesisException):
        raise
    except Exception:
        return None
    return Example(
        row=row,
        calls=tuple(trial.met),
        signature=None if violation is None else signature(violation, row.check.operation),
        effective=any(trial.effective),
        gradients=frozenset(trial.telling),
        recorded=tuple(trial.calls),
        size=size(trial),
        message=str(violation or ""),
        shown=None if violation is None else partial(counterexample, row, trial.target, violation, trial),
        ordinary=trial.ordinary,
        choices=tuple(data.choices[begun:]),
        off=_off(violation),
    )


def _off(violation: Violation | None) -> float:
    """Return the largest error in units of its bound, where numbers were judged; infinite where there is no number."""
    if violation is None or violation.exact is None:
        return 0.0
    judged = (violation.observed, violation.exact, violation.bound)
    observed, exact, bound = (np.asarray(x, dtype=np.float64) for x in judged)
    return float(ratios(observed, Reference(exact, bound)).max(initial=0.0))
