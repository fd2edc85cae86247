"""Learning rates as ``get_lr(it)``, whose sizes are arguments or constants of its module.

Which of them is which is told by their usual names; those of other names are tried as whatever is still open.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import permutations
from typing import Any

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.floors import FIXED, rate_of_all
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import require_known
from veriformer.verify.forms.size_names import size_of

STEP = ("it", "step", "t", "iter", "iteration", "current_step", "step_num", "global_step", "iter_num", "steps")
ROLES = {
    "max_lr": (
        *("learning_rate", "max_lr", "lr", "base_lr", "peak_lr", "lr_max", "initial_lr", "max_learning_rate"),
        *("start_lr", "init_lr"),
    ),
    "warmup_steps": (
        "warmup_iters",
        "warmup_steps",
        "num_warmup_steps",
        "warmup",
        "n_warmup_steps",
        "warmup_iterations",
    ),
    "total_steps": (
        *("lr_decay_iters", "max_steps", "total_steps", "num_training_steps", "max_iters", "max_iterations"),
        *("cosine_cycle_iters", "cos_cycle_iters", "total_iters", "decay_steps", "lr_decay_steps", "num_steps"),
        *("first_cycle_steps", "cycle_steps", "T_max", "training_steps"),
    ),
    "lowest": ("min_lr", "lr_min", "final_lr", "eta_min", "min_learning_rate", "lr_end", "end_lr", "lr_final"),
    "lowest_share": (
        *("min_lr_ratio", "min_lr_rate", "min_lr_factor", "min_lr_frac", "min_lr_fraction", "min_ratio", "alpha_f"),
        *("final_lr_ratio", "final_lr_factor", "final_lr_frac", "final_ratio", "final_frac", "lr_min_ratio"),
    ),
    "first": ("warmup_min_lr", "warmup_start_lr", "warmup_init_lr", "warmup_initial_lr", "warmup_lr_init"),
    "warmup_share": (
        *("warmup_fraction", "warmup_frac", "warmup_ratio", "warmup_percent", "warmup_pct", "warmup_proportion"),
        *("warmup_share", "pct_start"),
    ),
    "decay_share": ("annealing_fraction", "anneal_fraction", "decay_fraction", "cosine_fraction"),
    "d_model": ("d_model", "model_size", "dim", "n_embd"),
    "factor": ("factor", "lr_mul", "scale_factor", "scale"),
}


_KINDS = frozenset(("type", "method", "mode", "strategy", "style", "kind", "fn", "func", "schedule"))
"""Words of an argument that says which kind of warmup there is."""


def role_of(name: str) -> str:
    """Return the role of an argument by its name, or by the words of it; empty where it has none."""
    by_name = next((role for role, names in ROLES.items() if name in names), "")
    if by_name:
        return by_name
    if size_of(name) == "width":
        return "d_model"
    own = set(words(name))
    if not {"warm", "warmup"} & own or own & _KINDS:
        return ""
    if own & {"lr", "rate"}:
        return "max_lr" if own & {"max", "peak"} else "first" if own & {"min", "init", "initial", "start"} else ""
    return "warmup_steps"


def find_roles(names: Iterable[str]) -> dict[str, str]:
    """Return by role the first argument that has it, of usual names before such as have a word of it."""
    found: dict[str, str] = {}
    listed = list(names)
    for name in sorted(listed, key=lambda one: not any(one in usual for usual in ROLES.values())):
        if role_of(name):
            found.setdefault(role_of(name), name)
    peaks = [name for name in listed if role_of(name) == "max_lr" and not _FIRST & set(words(name))]
    if peaks and _FIRST & set(words(found["max_lr"])):  # where there is a peak beside it, it is what the rise begins at
        found = {"first": found["max_lr"], **found, "max_lr": peaks[0]}
    return found


_FIRST = frozenset(("init", "initial", "start"))
"""Words of a rate from which a schedule begins."""


SPARE = ("lowest", "factor")
"""Roles beyond the contract that an argument of an unknown name may have."""

WORDS = {"lr", "rate", "schedule", "cosine", "warmup", "noam", "scheduler"}
_NAMES = {"warmup_cosine": {"cosine", "cos"}, "warmup": {"warmup"}, "noam": {"noam"}}
"""Words by which a class names its schedule."""


def names_schedule(candidate: Candidate, operation: str) -> bool:
    """Return whether the name of a class is that of a schedule."""
    return bool(_NAMES[operation] & set(candidate.words))


NEEDED = {
    "warmup_cosine": ("max_lr", "warmup_steps", "total_steps"),
    "warmup": ("max_lr", "warmup_steps"),
    "noam": ("d_model", "warmup_steps"),
}
"""By operation, the arguments without which it is none."""


_MOST = 4
"""Maximum number of arguments and constants of unknown names that are tried."""

COUNTS = ("steps as they are", "steps, those of the warm-up and all from 0 on")
"""Count that a function is given: the first step is 0 and gives a rate of 0, or is 0 and gives the first part of the
rise."""

COUNTED = ("warmup_steps", "total_steps")
"""Arguments that count steps."""

_SHARES = {"warmup_steps": "warmup_share"}
"""By role the one that says it as a share of all steps."""


def _with_shares(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by role, and beside them the ends of the warmup and of the decay as shares of all steps."""
    total = given.get("total_steps")
    if not total:
        return dict(given)
    share = given["warmup_steps"] / total
    share = share if int(total * share) == given["warmup_steps"] else math.nextafter(share, math.inf)
    return {**given, "warmup_share": share, "decay_share": 1.0}


_LEFT = "as it is"
"""Reading of an argument that keeps its own value."""


def _numbers(candidate: Candidate) -> dict[str, Any]:
    """Return the numbers that the function depends on, by name: arguments with their defaults, constants that it
    reads.
    """
    code = getattr(candidate.thing, "__code__", None)
    around = getattr(candidate.thing, "__globals__", {})
    read = {name: around[name] for name in (code.co_names if code is not None else ()) if name in around}
    given = {name: p.default for name, p in candidate.parameters.items()}
    return {name: x for name, x in {**read, **given}.items() if type(x) in (int, float) or x is inspect.Parameter.empty}


def _parts(candidate: Candidate) -> tuple[str, dict[str, str]]:
    """Return the name of the step, and by role the name of a parameter, or of a constant that the function reads."""
    names = candidate.parameters
    step = next((name for name in STEP if name in names), "")
    numbers = {name.lower(): name for name in _numbers(candidate) if name != step}
    found = {}
    for role, known in ROLES.items():
        taken = next((numbers[name.lower()] for name in known if name.lower() in numbers), None)
        if taken is not None:
            found[role] = taken
    return step, found


def _missing(operation: str, found: Mapping[str, str]) -> list[str]:
    """Return the roles without which there is no such schedule, and that none of those found says."""
    return [role for role in NEEDED[operation] if role not in found and _SHARES.get(role) not in found]


def _meanings(candidate: Candidate, operation: str) -> list[dict[str, str]]:
    """Return the possible roles of arguments: by their usual names, and each way to share out the others among those of
    no usual name. An argument in no role keeps its own value, where it has one."""
    step, found = _parts(candidate)
    missing = _missing(operation, found)
    spare = [role for role in SPARE if role not in found]
    numbers = _numbers(candidate)
    unknown = [name for name in numbers if name != step and name not in found.values()]
    if not unknown or len(unknown) < len(missing) or len(unknown) > _MOST:
        return [] if missing else [found]
    asked = {name for name in unknown if numbers[name] is inspect.Parameter.empty}
    free = [*missing, *spare, *[_LEFT] * len(unknown)]
    ways = dict.fromkeys(way for way in permutations(free, len(unknown)))
    shared = [dict(zip(unknown, way, strict=True)) for way in ways]
    every = [
        found | {role: name for name, role in way.items() if role != _LEFT}
        for way in shared
        if set(missing) <= set(way.values()) and not any(way[name] == _LEFT for name in asked)
    ]
    return sorted(every, key=lambda one: sum(role in FIXED for role in one))  # the fewest that the contract has not


def _told(candidate: Candidate, roles: Mapping[str, str]) -> str:
    """Return in words the roles of parameters with unusual names: ``lowest as floor``."""
    usual = _parts(candidate)[1]
    return ", ".join(f"{name} as {role}" for role, name in roles.items() if usual.get(role) != name) or "usual"


def _match(candidate: Candidate, operation: str) -> Match | None:
    if not inspect.isfunction(candidate.thing) or not WORDS & set(candidate.words):
        return None
    step, found = _parts(candidate)
    shares = {"warmup_share", "decay_share"} if "total_steps" in found else set()
    if not step or found.keys() - set(NEEDED[operation]) - FIXED.keys() - shares:
        return None
    meanings = _meanings(candidate, operation)
    if not meanings:
        return None
    require_known(candidate.parameters, [step, *(name for roles in meanings for name in roles.values())])
    counts = COUNTS[:1] if operation == "noam" else COUNTS
    return Match(
        _is_named(candidate, operation, found),
        {"roles": tuple(_told(candidate, roles) for roles in meanings), "counts": counts},
    )


def _is_named(candidate: Candidate, operation: str, usual: Mapping[str, str]) -> bool:
    """Return whether the code or its usual names say the schedule: a cosine, or the width of a model and no rate.

    What asks for more arguments of unknown names than there are roles without a usual one may be another schedule.
    """
    names = candidate.parameters
    asked = {name for name, p in names.items() if p.default is p.empty} - {_parts(candidate)[0]}
    if len(asked - set(usual.values())) > len(_missing(operation, usual)):
        return False
    if operation == "noam":
        return {"d_model", "warmup_steps"} <= usual.keys() and "max_lr" not in usual
    return operation == "warmup_cosine" and "cos" in candidate.thing.__code__.co_names


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    step = _parts(candidate)[0]
    meanings = _meanings(candidate, operation)
    roles = next((one for one in meanings if _told(candidate, one) == readings["roles"]), meanings[0])
    parameters = candidate.parameters
    less = COUNTS.index(readings.get("counts", COUNTS[0]))

    def call(**given: Any) -> Any:
        if operation == "warmup_cosine" and given["warmup_steps"] >= given["total_steps"]:
            raise NotOffered("warmup_steps: no step is left to decay in, and the share of it is 0 / 0")
        return rate_of_all(answer, given, roles)

    def answer(given: Mapping[str, Any]) -> Any:
        shifted = _with_shares({role: x - less if role in COUNTED else x for role, x in given.items()})
        values = {name: shifted[role] for role, name in roles.items()}
        own = {name: value for name, value in values.items() if name in parameters}
        with _set(candidate.thing, {name: value for name, value in values.items() if name not in own}):
            return candidate.thing(**{step: given["step"] - less}, **own)

    return as_operation(operation, call)


@contextmanager
def _set(function: Any, constants: dict[str, Any]) -> Iterator[None]:
    """Let the function read these constants of its module, which are put back afterwards."""
    module = function.__globals__
    before = {name: module[name] for name in constants if name in module}
    module.update(constants)
    try:
        yield
    finally:
        for name in constants:
            del module[name]
        module.update(before)


FORMS = tuple(
    Form(
        name=f"functions/{operation}_of_step",
        operation=operation,
        says="get_lr(it), with its sizes as arguments or as constants of its module",
        conventions=() if operation == "noam" else ("warmup.first_step",),
        neutral=("roles",),
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
    )
    for operation in NEEDED
)
