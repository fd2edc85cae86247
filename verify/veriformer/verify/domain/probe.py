"""Probe of what a target supports of an operation, by plain and drawn calls."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
from hypothesis.errors import HypothesisException, UnsatisfiedAssumption

from veriformer.verify.contract.features import GRADIENTS, features, present
from veriformer.verify.contract.refusals import AVOIDED
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.domain.calls import edges, find_size_rules
from veriformer.verify.domain.constants import Unadmitted, estimate_constants, hidden, nearest, with_smaller
from veriformer.verify.domain.inference import Probed, infer_refusals, unexplained_refusals
from veriformer.verify.domain.sample import COARSER, Sample, infer_precision
from veriformer.verify.examples import EXAMPLES_PER_SEED, prepared, without_constants
from veriformer.verify.judging import isolation
from veriformer.verify.judging.arguments import with_required_arguments, without
from veriformer.verify.judging.exceptions import Ended, RowTimeout, code_of
from veriformer.verify.judging.judge import Violation
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.layouts import laid_out
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.foreign import message_of
from veriformer.verify.scripts import drivers
from veriformer.verify.targets.target import Target

PLAIN = 4
"""Plain calls in each dtype."""

DRAWN = 30
"""Drawn calls at first: nothing refused among so many, and nothing more is asked."""

LAID_OUT = 20
"""Drawn calls whose tensors are laid out in memory in all the ways there are."""

MORE = 100
"""Drawn calls more where some of those were refused."""

TURNS = 2
"""Number of rounds in which more calls are drawn, without the features found to be refused by then."""

SECONDS = 60.0
"""The time that one operation may take, whatever its calls do."""

BUSY = 0.2
"""The share of that time in processor time after which nothing more is drawn for one operation."""

REJECTED = 60
"""Draws of which none may be used: that kind of call is not what the target takes, and is asked for no longer."""

_BASES = ("fp32", "fp16", "bf16", "fp64")
NO_GRAPH = "the result carries no graph"


class _NothingDrawn(Ended):
    """End of drawing: all calls of this kind that are left are known to be refused."""


@dataclass
class Probe:
    """The calls made of one operation."""

    target: Target
    operation: OpInfo
    device: str = "cpu"
    dtypes: tuple[str, ...] = _BASES
    may_kill: bool = False
    seconds: float = SECONDS
    tell: Callable[[Domain], None] | None = None
    look: Callable[[Probe], None] | None = None
    began: float = field(default_factory=time.process_time)
    calls: list[Probed] = field(default_factory=list)
    gradients: list[Probed] = field(default_factory=list)
    rules: tuple[str, ...] = ()
    constants: dict[str, Any] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    unknown: str = ""
    precision: dict[str, str] = field(default_factory=dict)
    plain: dict[str, list[Sample]] = field(default_factory=dict)
    drawn: list[Sample] = field(default_factory=list)
    _measured: str = "sample_basic"
    _measured_once: bool = False

    def run(self) -> Domain:
        """Make the calls and conclude. A call that takes too long ends the probing, with what is known by then."""
        base = None
        try:
            with isolation.time_limit(self.seconds, may_kill=self.may_kill):
                base = self._base() or self._base_by_sizes() or self._base_by_shapes() or self._base_by_drawing()
                if base is not None:
                    self._tell()
                    self._measure_plainly()
                    self._draw(base)
                    self._measure()
                    if self.look is not None:
                        self.look(self)
        except RowTimeout:
            pass
        return Domain() if base is None else self._concluded()

    @property
    def names(self) -> list[str]:
        """The features that may be refused, in the order in which they are named."""
        return [one.name for one in features(self.operation.name) if one.optional]

    def _base(self) -> str | None:
        """Return the base dtype: the first in which a plain call is answered."""
        dtypes = [name for name in _BASES if name in self.operation.dtypes and name in self.dtypes]
        for dtype in dtypes:
            self._make(dtype, "sample_basic", PLAIN)
        return self._answered(dtypes)

    def _base_by_shapes(self) -> str | None:
        """Choose the base dtype of a target that takes only plain shapes: without all avoidable features, then each
        alone."""
        avoided = {name: "" for name in self.names if name in AVOIDED}
        if not avoided:
            return None
        whole, self.calls, self.plain = self.target, [], {}
        self.target = whole.within({self.operation.name: Domain(refused=avoided)})
        base = self._base() or self._base_by_drawing()
        for name in avoided:
            if base is None:
                break
            others = {other: said for other, said in avoided.items() if other != name}
            self.target = whole.within({self.operation.name: Domain(refused=others)})
            self._make(base, self._measured, EXAMPLES_PER_SEED, first=EXAMPLES_PER_SEED)
        found = self._refused()
        self.target = whole.within({self.operation.name: Domain(refused=found)}) if found else whole
        return base

    def _base_by_drawing(self) -> str | None:
        """Choose the base dtype from drawn calls if every plain call is refused."""
        dtypes = [name for name in _BASES if name in self.operation.dtypes and name in self.dtypes]
        self._measured = "sample"
        for dtype in dtypes:
            self._make(dtype, "sample", EXAMPLES_PER_SEED if self._answered(dtypes) else DRAWN)
        return self._answered(dtypes)

    def _answered(self, dtypes: Sequence[str]) -> str | None:
        answered = {dtype for dtype in dtypes if any(dtype in c.features and c.error is None for c in self.calls)}
        return next((dtype for dtype in dtypes if dtype in answered), None)

    def _base_by_sizes(self) -> str | None:
        """Choose the base dtype of a target that takes only some sizes, by the size rules of ``find_size_rules``."""
        for dtype in self.dtypes:
            trial = self._trial(dtype)
            rules = find_size_rules(self.operation.name, trial, lambda t, a: _answer(t, a)[0] is not None)
            if rules:
                self.rules = tuple(map(str, rules))
                self.target = self.target.within({self.operation.name: Domain(rules=self.rules)})
                self.calls, self.plain = [], {}
                return self._base()
        return None

    def _trial(self, dtype: str, data: Any = None) -> Trial:
        positional = POSITIONAL.get(self.operation.name, ())
        trial = Trial(self.target, self.operation.name, positional, dtype, self.device, data)
        trial.probing = True
        return trial

    def _draw(self, base: str) -> None:
        self._make(base, "sample", DRAWN)
        self._tell()
        self._make(base, "laid_out", LAID_OUT)
        if self.operation.argument_perturbations is not None:
            self._make(base, "argument_perturbations", 1)
        self._tell()
        self._ask_edges(base)
        self._draw_elsewhere(base, 0)
        self._tell()
        found: dict[str, str] = {}
        for turn in range(1, TURNS + 1):
            if not unexplained_refusals(self.calls, found):
                return
            self._make(base, "sample", MORE, first=turn * MORE)
            self._make(base, "laid_out", MORE // 2, first=turn * MORE)
            found = self._refused()
            # Without what is known to be refused, what else is comes to light; a dtype may yet be found to do.
            known = {label: message for label, message in found.items() if label not in self.dtypes}
            self.target = self.target.within({self.operation.name: Domain(refused=known, rules=self.rules)})
            self._make(base, "sample", DRAWN, first=(turn + TURNS) * MORE)
            self._draw_elsewhere(base, turn)

    def _tell(self) -> None:
        """Say what is known by now: the next call may end the process."""
        if self.tell is not None:
            self.tell(self._concluded())

    def _ask_edges(self, base: str) -> None:
        """Make the calls at the edge of each plain one, and of drawn ones where there are few plain ones."""
        for sample in [*self.plain.get(base, ()), *self.drawn][:PLAIN]:
            for arguments in edges(self.operation.name, sample.arguments):
                with contextlib.suppress(UnsatisfiedAssumption):  # one that the target takes no argument for
                    self._call(sample.trial, arguments, "edges")

    def _draw_elsewhere(self, base: str, turn: int) -> None:
        known = infer_refusals([call for call in self.calls if base in call.features], self.names)
        for dtype in self.dtypes:
            if dtype != base and dtype in self.operation.dtypes:
                self._make(dtype, "sample", EXAMPLES_PER_SEED // 2, first=turn * EXAMPLES_PER_SEED)
                own = [call for call in self.calls if dtype in call.features]
                # What one format alone refuses, as a number that a half does not hold, is told by calls in that format.
                if unexplained_refusals(own, known) and any(call.error is None for call in own):
                    self._make(dtype, "sample", MORE // 2, first=(turn + TURNS) * MORE)

    def _make(self, dtype: str, what: str, count: int, first: int = 0) -> None:
        """Make so many calls of a kind: ``laid_out``, or ``sample_basic``, ``sample`` or ``argument_perturbations`` of
        the operation."""

        made, rejected = len(self.calls), 0

        def body(data: st.DataObject) -> None:
            nonlocal rejected
            try:
                self._example(dtype, what, data)
            except UnsatisfiedAssumption:
                rejected += 1
                if len(self.calls) == made and rejected >= REJECTED:
                    raise _NothingDrawn from None
                raise

        for start in range(first, first + count, EXAMPLES_PER_SEED):
            if time.process_time() - self.began > BUSY * self.seconds:
                return
            key = f"probe|{self.operation.name}|{dtype}|{what}|{start}"
            with without_constants(), contextlib.suppress(HypothesisException, _NothingDrawn):
                prepared(body, key, min(EXAMPLES_PER_SEED, first + count - start))()

    def _example(self, dtype: str, what: str, data: st.DataObject) -> None:
        trial = self._trial(dtype, data)
        drawn: Any = laid_out(trial, self.operation) if what == "laid_out" else getattr(self.operation, what)(trial)
        if what != "argument_perturbations":
            return self._call(trial, drawn, what)
        for arguments in [drawn[0], *drawn[1].values()]:
            with contextlib.suppress(UnsatisfiedAssumption):  # one of an argument that the target has not
                self._call(trial, arguments, what)
        return None

    def _call(self, trial: Trial, arguments: Arguments, what: str) -> None:
        arguments = with_required_arguments(self.operation.name, arguments, self.target.requires(self.operation.name))
        lacking = self.target.unsupported_args(self.operation.name)  # which it is never given: they explain no refusal
        given = {name: value for name, value in arguments.items() if name not in lacking}
        names = present(self.operation.name, given, dtype=trial.row_dtype)
        outcome, error = _answer(trial, arguments)
        self.calls.append(Probed(names, error))
        if outcome is not None and what == self._measured:
            self.plain.setdefault(trial.row_dtype, []).append(Sample(trial, arguments, outcome))
        elif outcome is not None and what == "sample" and len(self.drawn) < PLAIN:
            self.drawn.append(Sample(trial, arguments, outcome))
        if outcome is not None and self.operation.vjps and len(self.calls) % 3 == 0:
            wrt = self.operation.differentiable(arguments)
            self.gradients.append(Probed(names | {GRADIENTS}, _answer(trial, arguments, wrt)[1]))

    def _measure_plainly(self) -> None:
        """Measure on the plain calls before others are made: these may take all the time, and without its constants a
        target would be judged by those of others. It costs the drawing nothing."""
        began = time.process_time()
        if self._measured == "sample_basic":
            self._measure()
            self._tell()
            self._measured_once = True
        self.began += time.process_time() - began

    def _measure(self) -> None:
        """Estimate what the signature hides, in the finest dtype that shows it, and then the formats computed in."""
        if not self.operation.formulas or self._measured_once:
            return
        self._estimate()
        for dtype, samples in self.plain.items():
            found = infer_precision(samples, self.operation, dtype, self.constants)
            if found != dtype:
                self.precision[dtype] = found

    def _estimate(self) -> None:
        names = hidden(self.target, self.operation.name)
        shown = self.target.shows(self.operation.name)
        said = {name: shown[name] for name in names if name in shown}
        self.declared = tuple(said)
        for dtype in ("fp64", "fp32", "fp16", "bf16") if names else ():
            samples = with_smaller(self.operation, self.plain.get(dtype, []), lambda t, a: _answer(t, a)[0])
            for judged_by in (dtype, *COARSER.get(dtype, ())[:1]):
                try:
                    found = estimate_constants(self.operation, names, samples, judged_by, said) if samples else None
                except Unadmitted as error:
                    self.unknown = str(error)
                    return
                if found is not None:
                    self.constants = found
                    return
        # Nothing explains the results: what it says of itself, and of what it does not say what is nearest.
        plain = next((found for found in self.plain.values() if found), [])
        self.constants = {**(nearest(self.operation, names, plain) if names and plain else {}), **said}

    def _refused(self) -> dict[str, str]:
        """Return the features that explain the refusals of calls without gradients, with the messages."""
        return infer_refusals(self.calls, [*self.dtypes, *self.names])

    def _concluded(self) -> Domain:
        found = self._refused()
        calls = list(self.calls)
        if self.gradients and all(call.error for call in self.gradients):
            found[GRADIENTS] = str(self.gradients[0].error)
        else:  # one that has a graph for some calls and none for others is wrong, and not narrower
            calls += [call for call in self.gradients if call.error != NO_GRAPH]
            found = infer_refusals(calls, [*self.dtypes, GRADIENTS, *self.names])
        stated = dict(self.target.stated_refusals(self.operation.name))
        found = stated | without(self.operation.name, self.target.requires(self.operation.name)) | found
        if self.unknown:  # nothing is judged by a constant that is not known
            found |= dict.fromkeys(self.dtypes, self.unknown)
        answered = frozenset().union(*(call.features for call in calls if call.error is None))
        known = [*(one.name for one in features(self.operation.name)), GRADIENTS, *self.dtypes]
        provided = tuple(name for name in known if name in answered)
        return Domain(
            provided=provided,
            refused=found,
            rules=self.rules,
            constants=self.constants,
            precision=self.precision,
            declared=self.declared,
            answered=tuple(dtype for dtype in self.dtypes if self.plain.get(dtype) and not self.unknown),
        )


def _answer(trial: Trial, arguments: Arguments, wrt: Sequence[str] = ()) -> tuple[Outcome | None, str | None]:
    """Make a call; return its outcome and the message of its refusal, None where it was answered, however wrongly."""
    try:
        return trial.call(arguments, wrt=wrt), None
    except Violation as violation:
        error = violation.__cause__
        if error is None:
            return None, NO_GRAPH if "carries no gradient" in str(violation) else None
        ends = not isinstance(error, Exception)  # who wants the process to end refuses nothing
        return None, None if ends or _of_ours(error) else _describe(error)


def _of_ours(error: BaseException) -> bool:
    """Return whether the driver of the target, not the target, raised: it found the answer wrong."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, AssertionError) and bool(frames) and frames[-1].filename == drivers.__file__


def _describe(error: BaseException) -> str:
    name, _, text = message_of(error).partition(": ")
    said = next(iter(text.strip().splitlines()), None) or code_of(error)
    return f"{name}: {said[:160]}" if said else name


def probe_operation(
    target: Target,
    operation: OpInfo,
    *,
    device: str = "cpu",
    dtypes: Sequence[str] = _BASES,
    may_kill: bool = False,
    seconds: float = SECONDS,
    tell: Callable[[Domain], None] | None = None,
    look: Callable[[Probe], None] | None = None,
) -> Domain:
    """Probe the features of an operation that the target supports; empty where it lacks it or answers no plain call.

    may_kill: this process may be ended where a call does not come back. seconds: when to give up by the clock.
    tell: is told what is known after each group of calls, for a target that ends its process. look: is given the probe
    with its calls at the end.
    """
    promised = tuple(name for name in dtypes if target.claims.promises(operation.name, name))
    if target.operation(operation.name) is None or operation.name in target.claims.not_provided:
        return Domain()
    return Probe(target, operation, device, promised, may_kill, seconds, tell, look).run()
