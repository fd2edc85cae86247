"""Learning rates that an object sets in an optimizer step by step: ``LRScheduler``, what makes one, and alike."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.floors import FIXED, rate_of_all
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.functions.schedule import COUNTED, COUNTS, NEEDED, find_roles, names_schedule
from veriformer.verify.forms.meanings import WORD, Parameters
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import require_known

_OPTIMIZER = ("optimizer", "opt", "optim")
_WORDS = {"lr", "schedule", "scheduler", "cosine", "warmup", "noam", "scheduled", "rate", "optim", "opt", "optimizer"}
_STEPS = ("step_and_update_lr", "step", "_update_learning_rate", "update_learning_rate")
_FIRST = ("last_iter", "last_step", "start_step", "init_step", "num_iters")
"""Steps that were taken before: none."""

RATES = ("of the step taken", "of the next step", "of the step before")
"""Step whose rate is set after a call of step(): an object that sets it when it is made is a step ahead, as is one that
takes the step that it is told for the last one; one that begins with its first call is a step behind."""

_AHEAD = dict(zip(RATES, (0, -1, 1), strict=True))

BEYOND = ("the lowest rate", "left out, for the cosine goes on as torch.optim.lr_scheduler.CosineAnnealingLR's does")
"""Rates after ``total_steps``, to which no training comes."""

_RESTARTS = {"restart", "restarts", "cyclic"}
LATER = 3
"""After so many calls a schedule has set its rate, whenever it begins."""

LONGEST = 1500
"""Maximum number of steps that are taken, one by one."""

MOST_STEPPED = 32
"""Schedules with their rates so far that are kept, of one candidate by one reading."""


def _own(candidate: Candidate) -> Parameters:
    return candidate.constructor if candidate.is_class else candidate.parameters


def _parts(candidate: Candidate) -> tuple[str, dict[str, str]]:
    parameters = _own(candidate)
    optimizer = next((name for name in _OPTIMIZER if name in parameters), "")
    found = find_roles(parameters)
    return optimizer, found | _factor(candidate, optimizer, found)


def _factor(candidate: Candidate, optimizer: str, found: Mapping[str, str]) -> dict[str, str]:
    """Return by its role the one further argument of a schedule that is made from a width, where its rates grow with
    it: Noam's are the only ones of a width, and have a factor at most."""
    known = {optimizer, *found.values(), *_FIRST}
    asked = [name for name, p in _own(candidate).items() if p.default is p.empty and name not in known]
    if not optimizer or found.keys() != set(NEEDED["noam"]) or len(asked) != 1:
        return {}
    values = dict.fromkeys(found.values(), 4)

    def later(factor: float) -> float:
        return _rate_after(LATER, lambda: _made(candidate, optimizer, {**values, asked[0]: factor}, 0.0))

    try:
        once, more = later(1.0), later(4.0)
    except Exception:  # refused, for whatever reason
        return {}
    return {"factor": asked[0]} if more == 4 * once != 0 else {}


def _match(candidate: Candidate, operation: str) -> Match | None:
    if candidate.is_module or not _WORDS & set(candidate.words):
        return None
    if candidate.is_class and (candidate.is_network or issubclass(candidate.thing, torch.optim.Optimizer)):
        return None
    optimizer, found = _parts(candidate)
    needed = {role for role in NEEDED[operation] if role != "max_lr"}
    others = found.keys() - NEEDED[operation] - FIXED.keys()
    if not optimizer or not needed <= found.keys() or others:
        return None
    style = _find_style(candidate, operation)
    require_known(_own(candidate), [optimizer, *found.values(), *_FIRST, *style])
    restarts = bool(_RESTARTS & set(candidate.words))
    told = ("beyond total_steps it starts again: what it gives there is left out, and 0 in its place",)
    readings: dict[str, tuple[str, ...]] = {WORD + name: (_SHAPES[operation],) for name in style}
    readings |= {"rate": RATES[:2] if operation == "noam" else (RATES[0], RATES[2])}
    readings |= {} if operation == "noam" else {"counts": COUNTS}
    readings |= {"beyond": BEYOND} if operation == "warmup_cosine" and not restarts else {}
    # Nothing but Noam's is made of an optimizer, a width and a warmup.
    named = bool(style) or operation == "noam" or names_schedule(candidate, operation)
    return Match(named, readings, told if restarts else ())


_SHAPES = {"warmup_cosine": "cosine", "warmup": "linear", "noam": "noam"}
"""Words by which an object that knows several schedules is told which."""
_STYLES = {"style", "type", "schedule", "mode"}


def _find_style(candidate: Candidate, operation: str) -> tuple[str, ...]:
    """Return the argument without a default, or with a word for it, that is compared with the word of the schedule."""
    if not candidate.is_class:
        return ()
    functions = [x for kind in candidate.thing.__mro__ for x in vars(kind).values() if inspect.isfunction(x)]
    known = {x for one in functions for x in one.__code__.co_consts}
    named = [one.__globals__.get(name) for one in functions for name in one.__code__.co_names if name.isupper()]
    if _SHAPES[operation] not in known and _SHAPES[operation] not in named:
        return ()
    own = {name: p.default for name, p in _own(candidate).items() if _STYLES & set(words(name))}
    words_for_it = (name for name, x in own.items() if x is inspect.Parameter.empty or isinstance(x, str))
    return tuple(words_for_it)[:1]


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    optimizer_name, found = _parts(candidate)
    restarts = bool(_RESTARTS & set(candidate.words))
    less = COUNTS.index(readings.get("counts", COUNTS[0]))

    def call(**given: Any) -> Any:
        step = given["step"]
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= LONGEST:
            raise NotOffered(f"step: whole numbers to {LONGEST} are taken one by one")
        total = given.get("total_steps", math.inf)
        if less and given["warmup_steps"] < 1:
            raise NotOffered("warmup_steps: its rise has a step more than it is told")
        if less and step == 0:
            return 0.0  # it begins a step later
        if given.get("warmup_steps", 0) >= total:
            raise NotOffered("warmup_steps: no step is left to decay in")
        if (restarts and step >= total) or (readings.get("beyond") == BEYOND[1] and step > total):
            return 0.0
        counted = {role: x - less if role in COUNTED else x for role, x in given.items()}
        return rate_of_all(answer, {**counted, "step": step - less}, found)

    def answer(given: Mapping[str, Any]) -> float:
        values = {found[role]: given[role] for role in found if role in given}
        values |= dict.fromkeys(_find_style(candidate, operation), _SHAPES[operation])
        values |= {name: 0 for name in _FIRST if _is_demanded(candidate, name)}

        def make() -> _Made:
            return _made(candidate, optimizer_name, values, base)

        base, rate = given.get("max_lr", 0.0), readings.get("rate", RATES[0])
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            if operation == "noam" and rate != RATES[0] and _takes_steps(*make()):
                raise NotOffered("it takes the optimizer's steps itself: the rate is that which they are taken at")
            if "max_lr" not in given and not rate_after(LATER, values, base, make):
                base = 1.0  # its rates are shares of the optimizer's own, which has no part in others
            return rate_after(given["step"] + _AHEAD[rate], values, base, make)

    stepped: dict[Any, _SteppedRates] = {}

    def rate_after(calls: int, values: Mapping[str, Any], base: float, make: Callable[[], _Made]) -> float:
        """Return the rate after so many calls by an object that has taken fewer, or by one that is made."""
        key = base, *sorted((name, repr(x)) for name, x in values.items())
        rates = stepped.pop(key, None) or _SteppedRates(*make(), _takes_steps(*make()))
        rate = rates.rate_after(calls)
        if not _asks_for_step(rates.take):  # an object that has raised is not kept, either
            stepped[key] = rates
        if len(stepped) > MOST_STEPPED:
            del stepped[next(iter(stepped))]
        return rate

    return as_operation(operation, call)


class _Recording(torch.optim.SGD):
    """An optimizer that records at which rates its steps are taken."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rates: list[float] = []

    @property
    def lr(self) -> float:
        """The rate of all groups, as optimizers over arrays have it."""
        return float(self.param_groups[0]["lr"])

    @lr.setter
    def lr(self, rate: float) -> None:
        for group in self.param_groups:
            group["lr"] = rate

    def step(self, closure: Any = None) -> Any:
        self.rates.append(float(self.param_groups[0]["lr"]))  # its parameter has no gradient: there is nothing to do
        return closure() if closure is not None else None

    step.hooked = True  # type: ignore[attr-defined]  # PyTorch would wrap it to be profiled, which takes longer than the step


def _takes_steps(optimizer: _Recording, take: Callable[..., Any]) -> bool:
    """Return whether a schedule takes the steps of its optimizer itself."""
    take(*(1,) * _asks_for_step(take))
    return bool(optimizer.rates)


_Made = tuple[_Recording, Callable[..., Any]]
"""An optimizer, and what goes one step on in its schedule."""


def _made(candidate: Candidate, optimizer_name: str, values: Mapping[str, Any], rate: float) -> _Made:
    """Return an optimizer of that rate, and what goes one step on in the schedule that is made of it."""
    optimizer = _Recording([torch.nn.Parameter(torch.zeros(1))], lr=rate)
    return optimizer, _stepping(candidate.thing(**{optimizer_name: optimizer}, **values))


@dataclass
class _SteppedRates:
    """Rates of a schedule, call by call; for a schedule with its own steps, the rates at these."""

    optimizer: _Recording
    take: Callable[..., Any]
    itself: bool
    rates: list[float] = field(default_factory=list)

    def rate_after(self, calls: int) -> float:
        """Return the rate after so many calls, with those made that have not been."""
        if _asks_for_step(self.take):
            self.take(calls)
            return self._rate()
        self.rates = self.rates or [self._rate()]
        while len(self.rates) <= calls:
            if not self.itself:
                self.optimizer.step()
            self.take()
            self.rates.append(self._rate())
        return self.rates[max(calls, 0)]

    def _rate(self) -> float:
        rates = self.optimizer.rates
        return rates[-1] if self.itself and rates else float(self.optimizer.param_groups[0]["lr"])


def _rate_after(calls: int, make: Callable[[], _Made]) -> float:
    """Return the rate after so many calls."""
    return _SteppedRates(*make(), _takes_steps(*make())).rate_after(calls)


def _is_demanded(candidate: Candidate, name: str) -> bool:
    found = _own(candidate).get(name)
    return found is not None and found.default is found.empty


def _asks_for_step(take: Callable[..., Any]) -> bool:
    """Return whether it requires the step as an argument."""
    asked = [p for p in inspect.signature(take).parameters.values() if p.default is p.empty]
    return len([p for p in asked if p.kind is p.POSITIONAL_OR_KEYWORD]) == 1


def _stepping(made: Any) -> Callable[..., Any]:
    """Return the method that takes one step. Raises NotOffered where there is none."""
    found = next((name for name in _STEPS if callable(getattr(made, name, None))), None)
    if found is None:
        raise NotOffered("it has no step()")
    function: Callable[..., Any] = getattr(made, found)
    return function


FORMS = tuple(
    Form(
        name=f"functions/{operation}_of_scheduler",
        operation=operation,
        says="an object built on an optimizer, or a function that gives one: the rate after so many calls of step()",
        conventions=() if operation == "noam" else ("warmup.first_step",),
        neutral=("rate",),
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
    )
    for operation in NEEDED
)
