"""Learning rates that an object sets in an optimizer step by step: ``LRScheduler``, what makes one, and alike."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.floors import FIXED, rate_of_all
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.functions.schedule import NEEDED, find_roles, names_schedule
from veriformer.verify.forms.meanings import WORD, Parameters
from veriformer.verify.forms.offering import offered
from veriformer.verify.forms.signatures import demanded

_OPTIMIZER = ("optimizer", "opt", "optim")
_WORDS = {"lr", "schedule", "scheduler", "cosine", "warmup", "noam", "scheduled", "rate", "optim", "opt"}
_STEPS = ("step_and_update_lr", "step", "_update_learning_rate", "update_learning_rate")
_FIRST = ("last_iter", "last_step", "start_step", "init_step", "num_iters")
"""Steps that were taken before: none."""

RATES = ("of the step taken", "of the next step", "of the step before")
"""What the rate is after a call of step(): an object that sets it when it is made is a step ahead, as is one that takes
the step that it is told for the last one; one that begins with its first call is a step behind."""

_AHEAD = dict(zip(RATES, (0, -1, 1), strict=True))

BEYOND = ("the lowest rate", "left out, for the cosine goes on as torch.optim.lr_scheduler.CosineAnnealingLR's does")
"""Rates after ``total_steps``, to which no training comes."""

_RESTARTS = {"restart", "restarts", "cyclic"}
LONGEST = 1500
"""So many steps are taken at most, one by one."""


def _own(candidate: Candidate) -> Parameters:
    return candidate.constructor if candidate.is_class else candidate.parameters


def _parts(candidate: Candidate) -> tuple[str, dict[str, str]]:
    parameters = _own(candidate)
    optimizer = next((name for name in _OPTIMIZER if name in parameters), "")
    return optimizer, find_roles(parameters)


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
    demanded(_own(candidate), [optimizer, *found.values(), *_FIRST, *style])
    restarts = bool(_RESTARTS & set(candidate.words))
    told = ("beyond total_steps it starts again: what it gives there is left out, and 0 in its place",)
    readings: dict[str, tuple[str, ...]] = {WORD + name: (_SHAPES[operation],) for name in style}
    readings |= {"rate": RATES[:2] if operation == "noam" else (RATES[0], RATES[2])}
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

    def call(**given: Any) -> Any:
        step = given["step"]
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= LONGEST:
            raise NotOffered(f"step: whole numbers to {LONGEST} are taken one by one")
        total = given.get("total_steps", math.inf)
        if given.get("warmup_steps", 0) >= total:
            raise NotOffered("warmup_steps: no step is left to decay in")
        if (restarts and step >= total) or (readings.get("beyond") == BEYOND[1] and step > total):
            return 0.0
        return rate_of_all(answer, given, found)

    def answer(given: Mapping[str, Any]) -> float:
        step = given["step"]
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=given.get("max_lr", 1.0))
        values = {found[role]: given[role] for role in found if role in given}
        values |= dict.fromkeys(_find_style(candidate, operation), _SHAPES[operation])
        values |= {name: 0 for name in _FIRST if _is_demanded(candidate, name)}
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            made = candidate.thing(**{optimizer_name: optimizer}, **values)
            take = _stepping(made)
            calls = step + _AHEAD[readings.get("rate", RATES[0])]
            if _asks_for_step(take):
                take(calls)
                return float(optimizer.param_groups[0]["lr"])
            for _ in range(calls):
                optimizer.step()
                take()
        return float(optimizer.param_groups[0]["lr"])

    return offered(operation, call)


def _is_demanded(candidate: Candidate, name: str) -> bool:
    found = _own(candidate).get(name)
    return found is not None and found.default is found.empty


def _asks_for_step(take: Callable[..., Any]) -> bool:
    """Whether it must be told which step it is."""
    asked = [p for p in inspect.signature(take).parameters.values() if p.default is p.empty]
    return len([p for p in asked if p.kind is p.POSITIONAL_OR_KEYWORD]) == 1


def _stepping(made: Any) -> Callable[..., Any]:
    """What goes one step on. Raises NotOffered where nothing does."""
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
