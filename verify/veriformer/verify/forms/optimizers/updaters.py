"""Optimizers as plain classes with ``update(w, grad)``, one instance for each parameter, and as whole runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Match, NotOffered, Readings
from veriformer.verify.forms.frameworks import over_tensors
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.optimizer_names import (
    GRADIENT,
    arguments_of,
    defaults_of,
    forms_of,
    offers,
    operation_named,
    rename_options,
    scale_rate,
)
from veriformer.verify.forms.optimizers.step_functions import Stepper
from veriformer.verify.forms.signatures import roles

_METHODS = ("update", "step", "apply", "update_params", "optimize", "__call__")
_UPDATED = {
    "param": ("w", "weights", "weight", "param", "params", "parameter", "parameters", "x", "theta", "p", "var"),
    "grad": ("grad_wrt_w", "grad", "grads", "gradient", "gradients", "dw", "g", "grad_w", "dx", "dtheta"),
}
_RUN = {
    "grad": ("grad", "grad_fn", "gradient", "grad_f", "gradient_fn", "df", "grad_func", "gradf"),
    "x": ("x", "x0", "init", "x_init", "theta", "theta0", "w", "w0", "params", "init_params", "initial", "start"),
    "count": ("num_iters", "n_iters", "iters", "n_iter", "num_steps", "n_steps", "steps", "max_iter", "max_iters"),
}
_CALLBACKS = ("callback", "hook")


def _find_method(candidate: Candidate) -> tuple[str, dict[str, str]]:
    """Return the method that gives the next parameter, with the names of its arguments; empty where there is none."""
    for name in _METHODS:
        found = roles(candidate.parameters_of(name), _UPDATED)
        if found is not None:
            return name, found
    return "", {}


def _match_class(candidate: Candidate, operation: str) -> Match | None:
    if not candidate.is_class or issubclass(candidate.thing, nn.Module | torch.optim.Optimizer):
        return None
    if operation_named(candidate, candidate.constructor) != operation:
        return None
    if not arguments_of(candidate.constructor, operation, {}) or not _find_method(candidate)[0]:
        return None
    return Match(True, {"gradient": GRADIENT} if operation == "sgd_momentum" else {})


def _bind_class(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    found = arguments_of(candidate.constructor, operation, {})
    method, names = _find_method(candidate)

    def one_step(p: Tensor, grad: Tensor, state: dict[str, Any], options: Mapping[str, Any]) -> None:
        made = state.setdefault("made", None) or candidate.make(**options)
        state["made"] = made
        update = over_tensors(getattr(made, method), candidate.module)
        given = {"param": p.detach().clone(), "grad": grad}
        listed = {role: [x] for role, x in given.items()} if _takes_lists(candidate, method, names) else given
        result = update(**{names[role]: x for role, x in listed.items()})
        _set_parameter(p, given["param"] if result is None else result)

    return _offered(operation, found, candidate.constructor, readings, one_step)


def _takes_lists(candidate: Candidate, method: str, names: Mapping[str, str]) -> bool:
    """Return whether an update takes several parameters at once, by its annotations or the words for both."""
    said = [str(candidate.parameters_of(method)[name].annotation).lower() for name in names.values()]
    return all("list" in one for one in said) or set(names.values()) <= _LISTS


_LISTS = frozenset(("params", "parameters", "weights", "grads", "gradients"))


def _match_run(candidate: Candidate, operation: str) -> Match | None:
    if not inspect.isfunction(candidate.thing) or operation_named(candidate, candidate.parameters) != operation:
        return None
    if "count" not in _run_names(candidate, operation):
        return None
    return Match(True, {"gradient": GRADIENT} if operation == "sgd_momentum" else {})


def _run_names(candidate: Candidate, operation: str) -> dict[str, str]:
    if not any(name in candidate.parameters for name in _RUN["count"]):
        return {}
    known = {name: p for name, p in candidate.parameters.items() if name not in _CALLBACKS}
    return arguments_of(known, operation, _RUN)


def _bind_run(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    found = _run_names(candidate, operation)
    own = {name: (lambda *given: None) for name in _CALLBACKS if name in candidate.parameters}

    def one_step(p: Tensor, grad: Tensor, state: dict[str, Any], options: Mapping[str, Any]) -> None:
        """Run again from the first point, with all gradients that there were."""
        state.setdefault("first", p.detach().clone())
        if "last" in state and not torch.equal(state["last"], p):
            raise NotOffered("params: a run goes on from where it was")
        grads = state["grads"] = [*state.get("grads", ()), grad.detach().clone()]
        rest = iter(grads)

        def gradient(x: Any, *more: Any) -> Any:
            g = next(rest).reshape(-1)
            return g if isinstance(x, Tensor) else g.numpy()

        arguments = {found["grad"]: gradient, found["x"]: state["first"].reshape(-1).clone()}
        _set_parameter(p, candidate.thing(**arguments, **{found["count"]: len(grads)}, **own, **options))
        state["last"] = p.detach().clone()

    return _offered(operation, found, candidate.parameters, readings, one_step)


def _set_parameter(p: Tensor, result: Any) -> None:
    result = first(result)
    if not isinstance(result, Tensor) or result.numel() != p.numel():
        raise NotOffered("expected the next parameter back")
    p.copy_(result.reshape(p.shape))


def _offered(
    operation: str, found: Mapping[str, str], own: Mapping[str, Any], readings: Readings, one_step: Callable[..., None]
) -> Callable[..., Any]:
    """Return the operation by steps of the code: its options under its own names."""

    def call(params: Iterable[Tensor], lr: float, **given: Any) -> Stepper:
        options = {found["lr"]: scale_rate(lr, given, readings), **rename_options(found, given)}
        return Stepper(one_step, params, (), options)

    return as_operation(operation, call, offers(found, operation), defaults=defaults_of(own, found, operation))


FORMS = (
    *forms_of("updater", "a class whose update(w, grad) gives the next parameter", _match_class, _bind_class),
    *forms_of("run", "a function of a gradient function, a point and a number of steps", _match_run, _bind_run),
)
