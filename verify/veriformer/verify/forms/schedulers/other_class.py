"""Any subclass of PyTorch's ``LRScheduler`` whose rates the contract has no formula for."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.optim.lr_scheduler import LRScheduler

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.form import Fit, Form, Match, Readings, Unfit

GIVEN: Mapping[str, Any] = {
    **dict.fromkeys(("lr_lambda", "lr_lambdas"), lambda step: 1 / (1 + step)),
    **dict.fromkeys(("gamma", "factor", "decay", "decay_rate", "power"), 0.5),
    **dict.fromkeys(("max_lr", "peak_lr", "lr_max"), 0.25),
    **dict.fromkeys(("base_lr", "min_lr", "eta_min", "init_lr", "start_lr", "warmup_start_lr", "lr_min"), 2.0**-10),
    **dict.fromkeys(
        ("warmup", "warmup_steps", "warmup_epochs", "num_warmup_steps", "n_warmup_steps", "warmup_iters"), 3
    ),
    **dict.fromkeys(("total_steps", "max_steps", "num_training_steps", "max_epochs", "total_epochs", "max_iters"), 17),
    **dict.fromkeys(("total_iters", "T_max", "num_epochs", "n_epochs", "epochs", "t_total", "training_steps"), 17),
    **dict.fromkeys(("step_size", "T_0", "first_cycle_steps", "cycle_steps", "period", "t_initial"), 5),
    **dict.fromkeys(("d_model", "dim", "model_size"), 16),
    "milestones": [2, 7],
}
"""Values of arguments that a constructor demands, by name."""

BY_WORDS: Mapping[str, float] = {
    "scale scaling factor ratio gamma power mult multiplier": 0.5,
    "lr rate": 2.0**-10,
    "total": 17,
    "steps step epochs epoch iters iter iterations period warmup size interval": 3,
}
"""Values of arguments by words of their names, where these are not usual; the first entry with such a word counts."""


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_class or not issubclass(candidate.thing, LRScheduler):
        return None
    if candidate.thing is LRScheduler:
        raise Unfit("it is the base of all schedules")
    stepped = candidate.thing.get_lr if candidate.thing.step is LRScheduler.step else candidate.thing.step
    if _is_abstract(stepped):
        return None
    demanded = _demanded(candidate)
    unknown = [name for name in demanded if _given(name) is None]
    if unknown:
        raise Unfit(f"its constructor demands {unknown[0]!r}, for which no value is known: give it a default")
    told = tuple(f"{name} is {_given(name)}" for name in demanded if not callable(_given(name)))
    return Match(True, told=told)


def _is_abstract(method: Any) -> bool:
    """Return whether all that a method does is to raise NotImplementedError: its classes are bases of others."""
    code = getattr(method, "__code__", None)
    return code is not None and code.co_names == ("NotImplementedError",)


def _given(name: str) -> Any:
    """Return the value of an argument of this name; None where its meaning is unknown."""
    if name in GIVEN:
        return GIVEN[name]
    return next((value for hints, value in BY_WORDS.items() if set(hints.split()) & set(words(name))), None)


def _demanded(candidate: Candidate) -> list[str]:
    parameters = list(candidate.constructor.values())[1:]
    single = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in single if p.default is p.empty]


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    demanded = {name: _given(name) for name in _demanded(candidate)}
    absent = [name for name, p in candidate.constructor.items() if p.default is None and name in GIVEN]
    # Some demand one of several arguments, each of which has a default.
    ways = [demanded, *({**demanded, name: GIVEN[name]} for name in absent)]
    given = next((way for way in ways if not _refused(candidate.thing, way)), demanded)

    def lr_scheduler(optimizer: torch.optim.Optimizer) -> Any:
        return candidate.thing(optimizer, **given)

    steps = candidate.parameters_of("step").values()
    lr_scheduler.measured = any(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in steps)  # type: ignore[attr-defined]
    return lr_scheduler


def _refused(make: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """Return the message that a constructor raises; empty where it builds a schedule."""
    trainer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.5, momentum=0.5)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            make(trainer, **given)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"
    return ""


def _judge(function: Callable[..., Any]) -> Fit:
    """Judge whether it can be built: all that can be judged without a formula."""
    error = _refused(function, {})
    if error:
        return Fit(1, 0, 0, False, 0.0, 0.0, error=error, raised=1)
    return Fit(1, 1, 1, True, 1.0, 1.0)


FORM = Form(
    name="schedulers/other_class",
    operation="lr_scheduler",
    says="any subclass of torch.optim.lr_scheduler.LRScheduler, judged by laws",
    beside=True,
    closed=True,
    match=_match,
    bind=_bind,
    judge=_judge,
)
