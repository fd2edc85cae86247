"""Trial of one example of a check: it draws inputs, calls the target, and judges its results against the spec.

Everything that a trial does to the target is recorded, so that a violation can be turned into a script.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import hypothesis.strategies as st
import numpy as np
import torch
from hypothesis.errors import UnsatisfiedAssumption

from veriformer.spec.arithmetic import Float, Format
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.features import GRADIENTS
from veriformer.verify.contract.ordinary import unusual
from veriformer.verify.contract.refusals import TOGETHER
from veriformer.verify.contract.signatures import OPTIONAL
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.judging import global_state
from veriformer.verify.judging.arguments import array, fresh, lift, plain, with_required_arguments
from veriformer.verify.judging.arithmetic import over_float64, running_error
from veriformer.verify.judging.backward import gradients
from veriformer.verify.judging.coverage import Coverage
from veriformer.verify.judging.exceptions import Interrupted, RowTimeout, describe_exception
from veriformer.verify.judging.judge import (
    HarnessError,
    Reference,
    RunStatistics,
    Violation,
    assert_within_bound,
)
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.results.foreign import message_of
from veriformer.verify.scripts.drivers import DRIVERS
from veriformer.verify.scripts.script import Recorded, names_pattern
from veriformer.verify.strategies import option
from veriformer.verify.strategies.extents import Ranges, Ties, Work, draw_sizes
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.target import Target
from veriformer.workers.stopwatch import Stopwatch

T = TypeVar("T")
Arguments = Mapping[str, Any]


LARGE_SHARE = 2
"""Inverse share of the examples whose sizes are drawn together, large ones among them; the others have small sizes.

A large example costs no more than a small one: most of what an example costs is independent of its sizes.
"""

_HALF_SHARE = 3
"""Inverse share of such examples in half precision, where a long sum has no bound that could tell right from wrong."""

BUDGET = 30000.0
"""Maximum number of entries that the formula may compute in such an example, at each of its steps."""

NOT_OFFERED = "not offered: "
"""Prefix of what an example needs where the form of the target has no such call."""


class Trial:
    """Interface of one example, as an Optuna objective gets a trial: a check's property test draws arguments from it,
    calls the target and asserts through it, which raises Violation where the target is wrong.

    Attributes: ``dtype`` (PyTorch) and ``row_dtype`` (its name); ``dtype_name`` and ``format`` (the spec's) by which
    results are judged; ``xp`` (the running-error arithmetic of that format), ``plain`` (the formula's own arithmetic in
    that format, for accuracy); ``constants``, what the target was found to compute with where its signature hides it;
    ``claims`` and ``device`` of the target under test; ``unsupported``, the options and gradients that this example
    would have asked for, had the target had them.
    """

    def __init__(
        self, target: Target, operation: str, positional: Sequence[str], dtype: str, device: str, data: st.DataObject
    ) -> None:
        self.target = target
        self.operation = operation
        self.positional = tuple(positional)
        self.row_dtype = dtype
        self.dtype = dtypes.TORCH[dtype]
        self.device = device
        known = target.domain(operation)
        self.constants: Mapping[str, Any] = known.constants
        self.judge_by(known.precision.get(dtype, dtype))
        self.calls: list[Recorded] = []
        self.outcomes: list[tuple[Recorded, Outcome]] = []
        self.statistics = RunStatistics()
        self.effective: list[bool] = []
        self.unsupported: set[str] = set()
        self.refused: dict[str, str] = {}
        self.probing = False
        self.waiting_since: Stopwatch | None = None
        self._coverage: Coverage | None = None
        self.large_share = _HALF_SHARE if dtype in dtypes.HALVES else LARGE_SHARE
        self.budget = BUDGET
        self._data = data

    def judge_by(self, dtype: str) -> None:
        """Judge by the errors and the range of this format: that of the row, or a coarser one of the results."""
        self.dtype_name = dtype
        self.format: Format = dtypes.format_of(dtypes.TORCH[dtype])
        large = bool(self.target.refusals(self.operation).rules)
        self.xp = over_float64(dtype) if large else running_error(dtype)  # digits by the hundred would take for ever
        self.plain = Float(self.format)

    @property
    def claims(self) -> Claims:
        """Claims of the target."""
        return self.target.claims

    # Drawing

    def draw(self, strategy: st.SearchStrategy[T]) -> T:
        """Draw a value from a Hypothesis strategy."""
        return self._data.conjecture_data.draw(strategy)

    def sizes(self, ranges: Ranges, work: Work, ties: Ties = ()) -> dict[str, int] | None:
        """Draw the sizes of all axes together, within the budget; None for small ones.

        One example in ``large_share`` has them. It is judged over float64, whose cost does not grow with the digits.
        """
        if self.large_share > 1 and self.draw(_share(self.large_share)) != self.large_share - 1:
            return None
        self.xp = over_float64(self.dtype_name)
        found = draw_sizes(self.draw, ranges, work, self.budget, ties)
        self._coverage = Coverage(self.statistics.covered)
        self._coverage.sizes(found)
        return found

    def rows(
        self,
        width: tuple[int, int] = (2, 30000),
        number: tuple[int, int] = (1, 4000),
        power: int = 1,
        least_rank: int = 0,
    ) -> tuple[int, ...] | None:
        """Draw the shape of rows whose sizes are drawn together, of up to four axes; None for small ones.

        power: that of the width with which the work grows.
        """
        found = self.sizes({"rows": number, "width": width}, lambda s: float(s["rows"] * s["width"] ** power))
        return None if found is None else (*self.axes(found["rows"], least_rank), found["width"])

    def axes(self, number: int, least_rank: int = 0) -> tuple[int, ...]:
        """Draw up to three axes of ``number`` rows, or a few less; no axis for one row, where that is allowed."""
        leading = [lead for _ in range(2) if (lead := self.draw(option_of_axes()))]
        if number == 1 and not leading and not least_rank:
            return ()
        shape: tuple[int, ...] = ()
        for lead in leading:
            shape, number = (*shape, min(lead, number)), number // min(lead, number)
        return (*shape, number)

    def only_large(self, times: float = 1.0) -> None:
        """Draw all sizes together from here on, within ``times`` the usual budget."""
        self.large_share, self.budget = 1, times * BUDGET

    def assume(self, condition: bool) -> None:
        """Reject this example without a verdict unless the condition holds."""
        if not condition:
            raise UnsatisfiedAssumption

    def tensor(self, values: Any) -> torch.Tensor:
        """Return numbers rounded to the dtype of this row, on its device."""
        return torch.as_tensor(np.array(values, dtype=np.float64)).to(self.dtype).to(self.device)

    def given(self, name: str, values: Any) -> torch.Tensor:
        """Return numbers as an argument of the target, rounded to the nearest ones that it takes exactly."""
        exactly = getattr(self.target.operation(self.operation), "exactly", {})
        value: torch.Tensor = exactly.get(name, lambda x: x)(self.tensor(values))
        return value

    def lift(self, arguments: Arguments, xp: Any = None) -> dict[str, Any]:
        """Convert arguments for a formula: floating tensors into the arithmetic, masks and ids into NumPy arrays."""
        return {key: lift(value, xp or self.xp) for key, value in arguments.items()}

    def option(self, name: str, *given: Any) -> dict[str, Any]:
        """Draw an option of a call from these values, None to leave it out; empty where the target lacks it."""
        return self.supported(self.draw(option(name, *given)))

    def supported(self, arguments: Arguments) -> dict[str, Any]:
        """Return the arguments of a call without the options that the target does not take."""
        lacking = self.target.unsupported_args(self.operation) & arguments.keys()
        self.unsupported |= lacking
        return {key: value for key, value in arguments.items() if key not in lacking}

    def offers(self, option: str) -> bool:
        """Return whether the target takes this option at all."""
        return option not in self.target.unsupported_args(self.operation)

    # Calling

    def call(
        self,
        arguments: Arguments,
        *,
        wrt: Sequence[str] = (),
        cotangent: torch.Tensor | None = None,
        operation: str | None = None,
    ) -> Outcome:
        """Call the target on fresh copies of the arguments, and compute the requested gradients.

        Raises Violation where the target raises, or where its result carries no gradient. An example that needs what
        the target does not take is given up.
        """
        operation = operation or self.operation
        arguments, wrt = self._supported_args(operation, arguments), self._differentiable_args(operation, wrt)
        self._needs_gradients(operation, arguments, wrt)
        record = self._record(arguments, tuple(wrt), cotangent, operation)
        copies = {key: fresh(value, key in wrt) for key, value in arguments.items()}
        value = self._offered(record.operation, copies)
        self.outcomes.append((record, Outcome(record.name, value)))
        if not wrt:
            return Outcome(record.name, value)
        given = None if cotangent is None else fresh(cotangent, False)
        return Outcome(record.name, value, self._gradients(value, copies, wrt, given))

    def raw(
        self,
        arguments: Arguments,
        copies: Arguments,
        *,
        wrt: Sequence[str] = (),
        cotangent: torch.Tensor | None = None,
        given: torch.Tensor | None = None,
        again: bool = False,
    ) -> Outcome:
        """Call the target on the very objects in ``copies``, and its backward pass on the very tensor ``given``.

        ``arguments`` and ``cotangent`` are what the record says of them; ``again`` takes the gradients twice.
        """
        arguments, copies = (
            self._supported_args(self.operation, arguments),
            self._supported_args(self.operation, copies),
        )
        wrt = self._differentiable_args(self.operation, wrt)
        self._needs_gradients(self.operation, arguments, wrt)
        record = self._record(arguments, tuple(wrt), cotangent, self.operation, again=again)
        value = self._offered(record.operation, copies)
        self.outcomes.append((record, Outcome(record.name, value)))
        return Outcome(record.name, value, self._gradients(value, copies, wrt, given, again) if wrt else {})

    def supports_call(self, arguments: Arguments, operation: str | None = None) -> bool:
        """Return whether the target takes every argument of this call that differs from leaving it out."""
        operation = operation or self.operation
        arguments = with_required_arguments(operation, arguments, self.target.requires(operation))
        given = {name: arguments[name] for name in self.target.unsupported_args(operation) & arguments.keys()}
        known = self.target.domain(operation).constants
        silent = {name: [known.get(name, OPTIONAL[operation][name])] for name in given}
        if "num_kv_heads" in silent:
            silent["num_kv_heads"].append(arguments.get("num_heads"))
        needed = {name for name, x in given.items() if not any(type(x) is type(s) and x == s for s in silent[name])}
        needed |= self.target.refusals(operation).of(arguments, self.row_dtype)
        self.unsupported |= needed
        return not needed

    def fitted(self, axis: str, size: int) -> int:
        """Return this size of an axis, or another size that the target accepts."""
        return self.target.refusals(self.operation).fitted(axis, size)

    def supports(self, feature: str) -> bool:
        """Return whether calls with this feature are worth drawing: unless the target refuses them all."""
        return feature not in self.target.refusals(self.operation).messages

    def _supported_args(self, operation: str, arguments: Arguments) -> Arguments:
        """Return the arguments that the target takes; reject the example where that would be another call."""
        arguments = with_required_arguments(operation, arguments, self.target.requires(operation))
        self.assume(self.supports_call(arguments, operation))
        lacking = self.target.unsupported_args(operation)
        return {key: value for key, value in arguments.items() if key not in lacking} if lacking else arguments

    def _differentiable_args(self, operation: str, wrt: Sequence[str]) -> Sequence[str]:
        """Return the arguments with gradients; none where the target claims to have none."""
        if not wrt or self.target.differentiates(operation):
            return wrt
        refused = GRADIENTS in self.target.refusals(operation).messages
        self.unsupported.add(GRADIENTS if refused else "gradient")
        return ()

    def _needs_gradients(self, operation: str, arguments: Arguments, wrt: Sequence[str]) -> None:
        """Reject the example where the target has no gradients of such a call, though of others."""
        if wrt:
            refused = self.target.refusals(operation).of(arguments, self.row_dtype, gradients=True)
            self.unsupported |= refused
            self.assume(not refused)

    def notice(
        self, operation: str, arguments: Arguments, wrt: tuple[str, ...], cotangent: torch.Tensor | None
    ) -> None:
        """Take note of a call that is about to be made; a trial that is only to be judged takes none."""

    def _record(
        self,
        arguments: Arguments,
        wrt: tuple[str, ...],
        cotangent: torch.Tensor | None,
        operation: str,
        refusal: tuple[str, ...] | None = None,
        again: bool = False,
    ) -> Recorded:
        self.notice(operation, arguments, wrt, cotangent)
        name = f"r{len(self.calls)}"
        default = self.dtype if operation in dtypes.DEFAULTED else None
        record = Recorded(name, operation, self.positional, dict(arguments), wrt, cotangent, refusal, default, again)
        self.calls.append(record)
        if self._coverage is not None:
            self._coverage.call(operation, arguments)
        return record

    def _offered(self, operation: str, arguments: Arguments) -> Any:
        """Return the result of a call; reject the example where the form lacks it, or it may be refused and is."""
        try:
            return self._raw(operation, arguments)
        except Violation as violation:
            cause = violation.__cause__
            self._give_up_unless_offered(cause)
            if isinstance(cause, Exception) and str(violation).startswith("raised "):
                self._narrow(operation, arguments, message_of(cause))
            raise

    def _give_up_unless_offered(self, cause: BaseException | None) -> None:
        """Reject the example where the form of the target lacks such calls."""
        if isinstance(cause, NotOffered) and not self.probing:
            self.unsupported.add(f"{NOT_OFFERED}{cause}")
            self.assume(False)

    def _narrow(self, operation: str, arguments: Arguments, message: str, *, backward: bool = False) -> None:
        """Reject the example where an exception says what the target does not provide, and nothing of what it computes:
        for a call that is not ordinary, or has a feature that no call had that was answered when probed.

        backward: whether it is the gradients that are refused.
        """
        provided = self.target.domain(operation).provided
        if self.probing or self.target.strict or not provided:
            return
        label = unusual(operation, arguments, provided, self.claims.provides.get(operation, ()))
        if label is not None:
            label = TOGETHER.join((label, GRADIENTS)) if backward else label
            self.refused[label] = message
            self.unsupported.add(label)
            self.assume(False)

    def _raw(self, operation: str, arguments: Arguments) -> Any:
        function = self.target.operation(operation)
        if function is None:
            raise HarnessError(f"{operation}: called, though the target does not provide it")
        positional = [arguments[key] for key in self.positional if key in arguments]
        options = {key: value for key, value in arguments.items() if key not in self.positional}
        default = dtypes.default(self.dtype if operation in dtypes.DEFAULTED else None)
        with warnings.catch_warnings(), default, self._guarded(operation):
            warnings.simplefilter("ignore")
            try:
                if operation in DRIVERS:
                    with self.target.watching(self.operation):
                        return plain(DRIVERS[operation](self.target.implementation, *positional, **options))
                with self.target.watching(self.operation):
                    value = plain(function(*positional, **options))
                number = type(value) is float and operation in dtypes.NUMBERS
                return torch.tensor(value, dtype=torch.float64, device=self.device) if number else value
            except (Interrupted, RowTimeout):
                raise
            except BaseException as error:  # leaving, or interrupting, is not the target's to say
                found = isinstance(error, AssertionError) and _in_use(error)  # by what uses it: nothing was raised
                raise Violation(str(error) if found else f"raised {describe_exception(error)}") from error

    def repeat(self, call: Recorded) -> Any:
        """Return the result of repeating a recorded call. Raises Violation where it raises."""
        return self._raw(call.operation, {key: fresh(value, False) for key, value in call.arguments.items()})

    @contextlib.contextmanager
    def _guarded(self, operation: str) -> Iterator[None]:
        """Run code of the target within the context: undo its changes of the process and measure its time."""
        self.waiting_since = Stopwatch()
        try:
            with global_state.guarded(global_state.OF_CALLS, self.target.changed(operation)):
                yield
        except RowTimeout:
            raise
        except BaseException:
            self.waiting_since = None
            raise
        self.waiting_since = None

    def _gradients(
        self, value: Any, copies: Arguments, wrt: Sequence[str], given: torch.Tensor | None, again: bool = False
    ) -> dict[str, torch.Tensor]:
        if not isinstance(value, torch.Tensor) or not value.requires_grad:
            raise Violation("the result carries no gradient", lines=["raise SystemExit(0)"])
        leaves = [copies[key] for key in wrt]
        given = torch.ones_like(value) if given is None else given
        if given.shape != value.shape:
            raise Violation(f"the result has shape {tuple(value.shape)}, expected {tuple(given.shape)}", about="shape")
        found, failure = None, None
        for kept in (True, False) if again else (False,):
            try:
                with self._guarded(self.operation), self.target.watching(self.operation):
                    found = gradients(value, leaves, given, retain_graph=kept)
            except (Interrupted, RowTimeout):
                raise
            except (
                BaseException
            ) as error:  # one that cannot keep its graph, or use it again, says so: nothing is wrong yet
                failure = error
        if found is None:
            self._give_up_unless_offered(failure)
            if isinstance(failure, Exception):
                self._narrow(self.operation, copies, message_of(failure), backward=True)
            raise Violation(f"the backward pass raised {describe_exception(failure or Exception())}") from failure
        return dict(zip(wrt, found, strict=True))

    # Judging

    def observe(self, function: Callable[..., torch.Tensor], *inputs: Observation) -> Observation:
        """Compute a quantity from results by a module-level function that uses nothing but torch.

        Its source goes into the script, so that check and script judge the same thing.
        """
        source = _source(function)
        inner = tuple(source for item in inputs for source in item.sources)
        expression = f"{function.__name__}({', '.join(item.expression for item in inputs)})"
        return Observation(function(*[item.value for item in inputs]), expression, (*inner, source))

    def reference(self, array: Any, *, scale: float | None = None, constant: bool = False) -> Reference:
        """Return the reference of an array of the spec, rounded to the dtype of this row."""
        exact, bound = self.xp.judgeable(array)
        return Reference(exact, bound, scale=scale, constant=constant)

    def assert_within_bound(self, observed: Observation, reference: Reference, what: str = "result") -> None:
        """Raise Violation unless the observation lies within its bound everywhere."""
        lines = [*dict.fromkeys("\n" + source for source in observed.sources)]
        self._judge_shape(observed, reference, what, lines)
        values = array(observed.value)
        reference = reference.narrowed(values)
        self.effective.append(reference.effective)
        try:
            assert_within_bound(values, reference, self.statistics, what=what, lines=lines)
        except Violation as violation:
            violation.expression = observed.expression
            raise

    def _judge_shape(self, observed: Observation, reference: Reference, what: str, lines: list[str]) -> None:
        if tuple(observed.value.shape) != reference.exact.shape:
            raise Violation(
                f"{what} has shape {tuple(observed.value.shape)}, expected {reference.exact.shape}",
                about="shape",
                lines=[*lines, f"raise SystemExit(tuple({observed.expression}.shape) != {reference.exact.shape!r})"],
            )

    def assert_true(self, condition: bool, message: str, expression: str | Callable[[], str], about: str = "") -> None:
        """Raise Violation with this message unless the condition holds; the expression is the condition in a script.

        expression: or a function that gives it, where its text is long. about: what is required, where the message
        tells more than that.
        """
        self.effective.append(True)
        if not condition:
            same = expression if isinstance(expression, str) else expression()
            lines = [f"raise SystemExit(0 if ({same}) else {message!r})"]
            raise Violation(message, lines=lines, about=about)

    def assert_raises(self, arguments: Arguments, *names: str, what: str = "bad input") -> None:
        """Raise Violation unless the target refuses the call, with any exception.

        With ``names``, it must be ValueError or TypeError, and its message hold one of them, as a word. A call that was
        refused leaves no record: nothing that is found later rests on it. What the target does not take, it cannot
        refuse.
        """
        if not self.supports_call(arguments):
            return
        arguments = self._supported_args(self.operation, arguments)
        self._record(arguments, (), None, self.operation, refusal=names)
        copies = {key: fresh(value, False) for key, value in arguments.items()}
        self.effective.append(True)
        try:
            self._raw(self.operation, copies)
        except Violation as raised:
            error = raised.__cause__
            if isinstance(error, NotOffered):
                self.calls.pop()
                return
            if isinstance(error, AssertionError | AttributeError) and _in_use(error):
                raise Violation(f"{what}: accepted, and could not be used: {error}") from error
            expected = (ValueError, TypeError) if names else (Exception,)
            if not isinstance(error, expected):
                kinds = " or ".join(kind.__name__ for kind in expected)
                raise Violation(f"{what}: expected {kinds}, but it {raised}") from error
            if names and not re.search(names_pattern(names), message_of(error)):
                raise Violation(
                    f"{what}: the refusal does not name {' or '.join(names)}: {message_of(error)}"
                ) from error
            self.calls.pop()
            return
        raise Violation(f"{what}: accepted")


def _in_use(error: BaseException) -> bool:
    """Return whether an error came from a driver, which met something unusable, not from the target itself."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename in {inspect.getfile(use) for use in DRIVERS.values()}


@functools.cache
def _source(function: Callable[..., torch.Tensor]) -> str:
    return textwrap.dedent(inspect.getsource(function))


@functools.cache
def option_of_axes() -> st.SearchStrategy[int]:
    """Return a strategy for the length of a further leading axis, 0 for none."""
    return st.sampled_from((0, 0, 1, 2, 3, 5))


@functools.cache
def _share(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)
