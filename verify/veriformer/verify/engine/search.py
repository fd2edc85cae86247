"""The search for a violation in one row, from Hypothesis to a Result."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field

import hypothesis.strategies as st
import torch
from hypothesis.errors import HypothesisException, Unsatisfiable, UnsatisfiedAssumption

from veriformer.verify.catalogue.example import judge
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.examples import EXAMPLES_PER_SEED, number, prepared, without_constants
from veriformer.verify.findings.evidence import signature
from veriformer.verify.findings.refused import Sizes, size_rule, sizes
from veriformer.verify.judging.counterexample import counterexample, ordinary, size
from veriformer.verify.judging.exceptions import Ended, Interrupted, describe_exception
from veriformer.verify.judging.judge import RunStatistics, Violation
from veriformer.verify.judging.repetition import unrepeatable
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import NOT_OFFERED, Trial
from veriformer.verify.results import Counterexample, Result, Status
from veriformer.verify.results.foreign import message_of
from veriformer.verify.targets.seeding import seed_generators
from veriformer.verify.targets.target import Target

VACUOUS_SHARE = 0.5
"""A row in which more than this share of the examples could not tell right from wrong was not exercised."""

MAX_DRAW_FACTOR = 3
"""A row that was not exercised draws on, to this multiple of its examples: a few unlucky draws say nothing of it."""

HANG_SHARE = 0.5
"""Of a row's time, what the target must have taken for a single call when it was over to hang, unless that call is
larger, in all or along some axis, than those of any example that held: many that held in it were slow, as Python loops
on a busy machine are, and a larger one may be slower. They say nothing against the target, and neither does the time
in which it is judged."""

SMALL = 32
"""Numbers in an example that a person reads at once."""

SHRINK_PATIENCE = 1 / 3
"""Of the effort for making an example smaller, what may go by in vain once it is small."""

MAX_UNSUPPORTED_EXAMPLES = 2 * EXAMPLES_PER_SEED
"""A row whose first examples, so many, all need what the target does not take has nothing to ask of it."""


class _NothingToAsk(Ended):
    """Every example needs an argument that the target does not take."""


class _StopShrinking(Ended):
    """The effort for making the example smaller is spent; the smallest so far stands."""


@dataclass
class Search:
    """The search for a violation: counts examples until the first, then keeps the smallest."""

    row: CheckRun
    target: Target
    profile: Profile
    statistics: RunStatistics = field(default_factory=RunStatistics)
    best: tuple[Violation, Trial] | None = None
    shrinks: int = 0
    in_vain: int = 0
    unsupported: list[frozenset[str]] = field(default_factory=list)
    refused: list[tuple[str, Sizes]] = field(default_factory=list)
    narrowed: list[Sizes] = field(default_factory=list)
    answered: list[Sizes] = field(default_factory=list)
    by_rule: bool = True
    unsatisfiable: bool = False
    now: Trial | None = None
    largest: Counter[str] = field(default_factory=Counter)

    def run(self, seed: str) -> Result:
        """Search for a violation and return a Result in every case."""
        try:
            applies = self.row.check.applies
            reason = applies and applies(self.target, self.row.check.operation, self.row.dtype)
            if reason:
                return self.row.result(Status.NOT_APPLICABLE, message=reason)
            seed_generators(number(f"{seed}|{self.row.key}|global"))
            for turn in range(MAX_DRAW_FACTOR):
                if turn and self.exercised():
                    break
                self.draw(seed, turn * self.planned)
            self.settle_refusals(seed)
            if self.unsupported and not self.statistics.examples:
                raise _NothingToAsk
            if self.unsatisfiable and not self.statistics.examples:
                return self._result(Status.VACUOUS, "no call that the implementation takes is of the kind judged")
            self._finish()
        except _NothingToAsk:
            refused = self.statistics.refused or None
            return self.row.result(Status.NOT_PROVIDED, message=self._what_is_unsupported(), refused=refused)
        except (Violation, _StopShrinking, HypothesisException, ExceptionGroup) as error:
            return self._failed(error)
        except Interrupted:
            raise
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:  # where a model is built or looked at
            return self._result(Status.FAIL, f"raised {describe_exception(error)}")
        except Exception:
            return self._broken()
        return self._held()

    def settle_refusals(self, seed: str) -> None:
        """Note the rule by which calls were refused; where there is none, raise Violation, made as small as others."""
        if not self.refused:
            return
        rule = size_rule([known for _, known in self.refused], self.answered, self.narrowed)
        if rule is not None:
            self.statistics.refused[rule] = self.refused[0][0]
            return
        self.by_rule = False
        self.statistics.examples = self.statistics.vacuous = 0
        self.draw(seed, 0)

    def draw(self, seed: str, done: int) -> None:
        """Judge as many examples as are planned."""
        for first in range(0, self.planned, EXAMPLES_PER_SEED):
            try:
                with without_constants():
                    planned = min(EXAMPLES_PER_SEED, self.planned - first)
                    key, shrink = f"{seed}|{self.row.key}|{done + first}", bool(self.profile.shrinks)
                    prepared(self.example, key, planned, further=done + first > 0, shrink=shrink)()
            except Unsatisfiable:  # of what the target takes, nothing is what the requirement speaks of
                self.unsatisfiable = True

    @property
    def planned(self) -> int:
        """Number of examples that the profile and the check ask for."""
        return max(1, round(self.profile.examples * self.row.check.effort))

    def exercised(self) -> bool:
        """Return whether enough examples were effective: half of those run, or of those planned if fewer."""
        effective = self.statistics.examples - self.statistics.vacuous
        return effective >= (1 - VACUOUS_SHARE) * min(self.planned, self.statistics.examples)

    def trial(self, data: st.DataObject) -> Trial:
        """Return the trial that judges one example."""
        check = self.row.check
        return Trial(self.target, check.operation, check.positional, self.row.dtype, self.row.device, data)

    def example(self, data: st.DataObject) -> None:
        """Judge one example; raises Violation."""
        check = self.row.check
        trial = self.now = self.trial(data)
        if self.best is None:
            trial.statistics = self.statistics
            self.statistics.examples += 1
        else:
            self.shrinks, self.in_vain = self.shrinks + 1, self.in_vain + 1
            small = size(self.best[1]) <= SMALL
            if self.shrinks > self.profile.shrinks or (small and self.in_vain > SHRINK_PATIENCE * self.profile.shrinks):
                raise _StopShrinking
        try:
            with self.statistics.sized(lambda: size(trial)):
                judge(check, trial)
            if trial.unsupported and not any(trial.effective):
                raise UnsatisfiedAssumption
        except UnsatisfiedAssumption:
            self.statistics.examples -= self.best is None
            self.statistics.refused |= trial.refused
            self.narrowed += [sizes(trial.calls[-1])] if trial.refused else []
            if trial.unsupported:
                self._note_unsupported(frozenset(trial.unsupported))
            raise
        except Violation as violation:
            if self.best is None and self._sets_aside(violation, trial):
                self.statistics.examples -= 1
                raise UnsatisfiedAssumption from violation
            name = check.operation
            if self.best is not None and signature(violation, name) != signature(self.best[0], name):
                return  # another cause: what is made smaller stays what was found
            if self.best is not None and ordinary(self.best[1]) and not ordinary(trial):
                return  # of ordinary calls alone a finding may say that code is wrong
            if self.best is None or size(trial) <= size(self.best[1]):
                self.best, self.in_vain = (violation, trial), 0
            raise
        self.largest |= extent(trial)
        self.answered += map(sizes, trial.calls)
        if self.best is None and not any(trial.effective):
            self.statistics.vacuous += 1

    def _finish(self) -> None:
        """Judge all examples together, where the check does so; raises Violation."""
        if self.row.check.finish is not None:
            with self.statistics.sized(lambda: None):
                self.row.check.finish(self.statistics)

    def _sets_aside(self, violation: Violation, trial: Trial) -> bool:
        """Return whether a call that raised is kept until it is known whether a rule on sizes refuses it."""
        narrows = bool(self.target.domain(trial.operation).provided) and not self.target.strict
        raised = isinstance(violation.__cause__, Exception) and str(violation).startswith("raised ")
        if not (narrows and raised and self.by_rule and trial.calls):
            return False
        self.refused.append((message_of(violation.__cause__ or violation), sizes(trial.calls[-1])))
        return True

    def _note_unsupported(self, names: frozenset[str]) -> None:
        self.unsupported.append(names)
        if not self.statistics.examples and len(self.unsupported) == MAX_UNSUPPORTED_EXAMPLES:
            raise _NothingToAsk

    def _what_is_unsupported(self) -> str:
        """Return the features that every example lacked, or if there are none those that any lacked, with the known
        reasons."""
        operation, reasons = self.row.check.operation, self.target.claims.not_provided
        refused = self.target.refusals(operation).messages
        every = sorted(frozenset.intersection(*self.unsupported) or frozenset.union(*self.unsupported))
        names = [name for name in every if not name.startswith(NOT_OFFERED)]
        said_by_form = Counter(name for found in self.unsupported for name in found if name.startswith(NOT_OFFERED))
        forms = [name for name, _ in said_by_form.most_common(1)]
        rules = {str(rule) for rule in self.target.refusals(operation).rules}
        found = [f"not provided: {name} ({refused[name]})" for name in names if name in refused]
        met = self.statistics.refused
        found += [f"not provided: {name} ({met[name]})" for name in names if name in met and name not in refused]
        found += [f"not provided: sizes other than {name}" for name in names if name in rules]
        claimed = [
            f"{operation}.{name}: {reasons[f'{operation}.{name}']}"
            for name in names
            if f"{operation}.{name}" in reasons
        ]
        silent = ", ".join(
            name for name in names if f"{operation}.{name}" not in reasons and name not in {*refused, *rules, *met}
        )
        said = [f"the implementation's {operation} takes no {silent}"] if silent else []
        return "; ".join([*claimed, *found, *said, *forms])

    def _held(self) -> Result:
        convention = self.row.check.convention
        status, message = Status.PASS, self.statistics.remark
        if not self.exercised():
            share = self.statistics.vacuous / self.statistics.examples
            status, message = Status.VACUOUS, f"{share:.0%} of the examples could not tell right from wrong"
        elif convention is not None and self.target.claims.deviates(convention):
            status, message = (
                Status.DEVIATION,
                f"{convention} = {self.target.claims.convention(convention)!r}, as claimed",
            )
        return self._result(status, message)

    def told(self, error: BaseException) -> Result | None:
        """Return the result for the violation found so far; None where there is none."""
        return self._failed(error) if self.best is not None else None

    def stopped(self) -> Result:
        """Return the result of a row whose time ended without a violation: that of the examples that held, unless it
        hangs.
        """
        said = f"stopped after {self.profile.timeout_s:g} s in example {self.statistics.examples}"
        self.statistics.examples -= 1
        if self.statistics.examples < 1:
            asked = self.now is not None and self.now.waiting_since is not None
            return self._result(Status.TIMEOUT if asked else Status.VACUOUS, said)
        if self.hangs():
            return self._result(Status.TIMEOUT, said)
        try:
            self._finish()
        except Violation as violation:
            return self._failed(violation)
        self.statistics.remark = "; ".join(filter(None, (self.statistics.remark, said)))
        return self._held()

    def hangs(self) -> bool:
        """Return whether a call hangs: over HANG_SHARE of the row's time, at sizes that earlier calls handled."""
        if self.now is None or self.now.waiting_since is None or not extent(self.now) <= self.largest:
            return False
        return self.now.waiting_since.spent > HANG_SHARE * self.profile.timeout_s

    def _failed(self, error: BaseException) -> Result:
        if self.best is None and not isinstance(error, Violation):
            return self._broken()
        if self.best is None:
            return self._result(Status.FAIL, str(error))
        violation, trial = self.best
        changing = unrepeatable(trial)
        message = f"{violation} ({changing})" if changing else str(violation)
        return self._result(Status.FAIL, message, counterexample(self.row, self.target, violation, trial))

    def _broken(self) -> Result:
        return self._result(Status.HARNESS_ERROR, traceback.format_exc(limit=-6))

    def _result(self, status: Status, message: str | None, example: Counterexample | None = None) -> Result:
        return self.row.result(
            status,
            examples=self.statistics.examples,
            worst_ratio=self.statistics.worst_ratio,
            worst_size=self.statistics.worst_size,
            vacuous_share=self.statistics.vacuous / max(1, self.statistics.examples),
            covered=dict(sorted(self.statistics.covered.items())),
            message=message,
            counterexample=example,
            refused=self.statistics.refused or None,
        )


def extent(trial: Trial) -> Counter[str]:
    """Return the largest sizes over the calls of an example: numbers in all tensors of one call, and each size and
    integer by argument and axis."""
    found: Counter[str] = Counter()
    for call in trial.calls:
        asked: Counter[str] = Counter()
        for name, value in call.arguments.items():
            for item in value if isinstance(value, list | tuple) else [value]:
                if isinstance(item, torch.Tensor):
                    asked["numbers"] += item.numel()
                    asked |= Counter({f"{name}[{axis - item.ndim}]": size for axis, size in enumerate(item.shape)})
                elif isinstance(item, int):
                    asked |= Counter({name: item})
        found |= asked
    return found
