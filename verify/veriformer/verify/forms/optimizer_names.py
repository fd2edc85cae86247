"""Optimizers of the contract by the names of a class and of its constructor's arguments, and its arguments by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, Readings
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.signatures import default_of, roles

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "gradient_descent": (),
    "sgd_momentum": ("beta",),
    "adam": ("betas", "eps", "weight_decay"),
    "adamw": ("betas", "eps", "weight_decay"),
}
"""By operation, the contract's options."""

CONVENTIONS: Mapping[str, tuple[str, ...]] = {
    "gradient_descent": (),
    "sgd_momentum": ("sgd.first_velocity", "sgd.gradient_weight"),
    "adam": ("adam.eps",),
    "adamw": ("adam.eps", "adamw.decay"),
}
"""By operation, the conventions that its readings may differ in."""

PARAMS = {"params": ("params", "parameters", "param_groups", "model_params", "parameter_list")}
LR = ("lr", "learning_rate", "alpha", "eta", "step_size")
NAMES: Mapping[str, tuple[str, ...]] = {
    "betas": ("betas",),
    "beta1": ("beta1", "beta_1", "b1"),
    "beta2": ("beta2", "beta_2", "b2"),
    "eps": ("eps", "epsilon", "e"),
    "weight_decay": ("weight_decay", "wd", "decay", "weight_decay_rate", "l2"),
    "beta": ("momentum", "beta", "mu", "rho", "mass"),
    "dampening": ("dampening", "damping"),
}
_PLAIN = {
    *("my", "custom", "simple", "basic", "naive", "manual", "own", "plain", "vanilla", "optimizer", "optim", "step"),
    *("update", "from", "scratch", "with", "weight", "decay", "decoupled", "python", "torch", "stochastic", "and"),
    *("gradient", "descent", "standard", "the", "do", "apply", "faulty", "fix", "of", "single", "tensor", "minimal"),
}
"""Words that say of an optimizer nothing that makes it another one."""

_ADAM, _ADAMW, _SGD = {"adam"}, {"adamw"}, {"sgd"}


def operation_named(candidate: Candidate, parameters: Parameters) -> str:
    """Return the operation that name and constructor denote; empty where they denote another or none."""
    words = set(candidate.words)
    if {"adam", "w"} <= words:
        words = words - {"adam", "w"} | _ADAMW
    if "decay" in words and "weight" not in words:
        return ""  # another thing decays, such as the rate
    rest = words - _PLAIN
    if rest == _ADAMW or (rest == _ADAM and "decoupled" in words):
        return "adamw"
    if rest == _ADAM:
        return "adam"
    has_momentum = any(name in parameters for name in NAMES["beta"])
    if rest and rest <= {"sgd", "momentum", "gd"} and (rest != {"momentum"} or has_momentum):
        return "sgd_momentum" if has_momentum else "gradient_descent"
    if rest or not {"gradient", "descent"} <= words:
        return ""
    return "sgd_momentum" if has_momentum else "gradient_descent"


def arguments_of(parameters: Parameters, operation: str, needed: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return argument names by role; nothing where one is missing. Raises Unfit if an argument's value is unknown."""
    wanted = set(OPTIONS[operation]) | {"dampening" if "beta" in OPTIONS[operation] else "betas"}
    wanted |= {"beta1", "beta2"} if "betas" in wanted else set()
    known = {role: names for role, names in NAMES.items() if role in wanted}
    return roles(parameters, {**needed, "lr": LR}, known) or {}


def offers(found: Mapping[str, str], operation: str) -> list[str]:
    """Return the contract's options that these arguments give."""
    pair = "beta1" in found and "beta2" in found
    return [name for name in OPTIONS[operation] if name in found or (name == "betas" and pair)]


def defaults_of(parameters: Parameters, found: Mapping[str, str], operation: str) -> dict[str, Any]:
    """Return the code's default of each of the contract's options that has one.

    Momentum is left out: it is 0 in most code, which is another optimizer, so that it is given always.
    """
    empty = default_of({}, None)
    shown = {name: default_of(parameters, found.get(name)) for name in offers(found, operation) if name != "beta"}
    if "betas" in shown and "betas" not in found:
        pair = tuple(default_of(parameters, found[name]) for name in ("beta1", "beta2"))
        shown["betas"] = empty if empty in pair else pair
    return {name: value for name, value in shown.items() if value is not empty}


GRADIENT = ("times 1 − β", "as it is")
"""Multiples of the gradient that are added to the velocity."""


def scale_rate(lr: float, given: Mapping[str, Any], readings: Readings) -> float:
    """Return the learning rate by which a velocity of unscaled gradients gives the contract's steps."""
    return lr * (1 - given["beta"]) if readings.get("gradient") == GRADIENT[1] else lr


def rename_options(found: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contract's options under the code's own names."""
    taken = {found[name]: value for name, value in given.items() if name in found}
    if "betas" in given and "betas" not in found:
        taken |= dict(zip((found["beta1"], found["beta2"]), given["betas"], strict=True))
    return taken


def forms_of(
    kind: str,
    says: str,
    match: Callable[..., Match | None],
    bind: Callable[..., Callable[..., Any]],
    neutral: tuple[str, ...] = (),
) -> tuple[Form, ...]:
    """Return a form of each optimizer for one way to write it. match, bind: of a form, with ``operation`` beside."""
    return tuple(
        Form(
            name=f"optimizers/{operation}_{kind}",
            operation=operation,
            says=says,
            conventions=CONVENTIONS[operation],
            neutral=neutral,
            closed=True,
            match=partial(match, operation=operation),
            bind=partial(bind, operation=operation),
        )
        for operation in OPTIONS
    )
