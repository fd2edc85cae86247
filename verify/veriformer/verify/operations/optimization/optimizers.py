"""Draws and formulas shared by the records of the optimizers: runs, options, bad calls, final parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.op_info import Formula, InvalidCall, OpInfo
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.changes import perturbed
from veriformer.verify.operations.optimization.tensor_lists import OWN, shapes_of
from veriformer.verify.strategies import Values, choice, layouts, shapes, sizes, values
from veriformer.verify.targets.claims import Claims

_SCALES = (1.0, 1e-6, 1e3, 1e-12, 1e-4, 0.0, 1e8)


_RUNS = ("varied", "constant", "fading", "with zeros", "alternating")


def gradients(trial: Trial, kind: Values, i: int, steps: int, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return the gradients of one parameter: of one size or fading, constant, alternating or zero at some steps."""
    rng = np.random.default_rng([kind.seed, 2, i])
    g = kind.array(steps, *(shape or (1,))).reshape(steps, *shape) + 0.25 * rng.standard_normal((steps, *shape))
    run = _RUNS[rng.integers(len(_RUNS))]
    if run == "constant":
        g = np.broadcast_to(g[:1], g.shape)
    elif run == "fading":
        g = g * 0.1 ** np.arange(steps).reshape(-1, *[1] * len(shape))
    elif run == "alternating":
        g = np.abs(g) * (-1.0) ** np.arange(steps).reshape(-1, *[1] * len(shape))
    elif run == "with zeros":
        g = g * (rng.random((steps, *[1] * len(shape))) < 0.6)
    return np.asarray(g * rng.choice(_SCALES))


_RANGES: dict[str, tuple[int, int]] = {"tensors": (1, 400), "entries": (1, 2**17), "steps": (1, 5)}
"""Smallest and largest number of parameters, of entries of one of them, and of steps."""


def _work(s: Mapping[str, int]) -> float:
    return s["steps"] * (s["entries"] + OWN * s["tensors"])


def draw_run(name: str, trial: Trial, *, steps: int | None = None, gaps: bool = True) -> dict[str, Any]:
    """Draw parameters, which may start at 0 so that small steps show, gradients, and actions between steps.

    gaps: gradients may be missing, be zeroed, and the run may go on from a saved state.
    """
    kind = trial.draw(values())
    rng = kind.rng
    large = None if steps is not None else trial.sizes(_RANGES, _work)
    if large is not None:
        drawn, T = shapes_of(rng, large["tensors"], large["entries"]), large["steps"]
    else:
        drawn = trial.draw(st.lists(shapes(0, 2, 3), min_size=1, max_size=3))
        T = trial.draw(sizes(1, 8)) if steps is None else steps
    params = [
        trial.draw(layouts(expanded=False)).of(trial.tensor(rng.choice([1.0, 0.0, 1e-3]) * rng.standard_normal(shape)))
        for shape in drawn
    ]
    grads = [
        trial.draw(layouts(expanded=False)).of(trial.tensor(gradients(trial, kind, i, T, shape)))
        for i, shape in enumerate(drawn)
    ]
    run: dict[str, Any] = {"params": params, "lr": trial.draw(choice(0.125, 0.1, 1e-3, 1.0))}
    run |= {"optimizer": name, "grads": grads}
    return run | (_between(trial, rng, T, len(params)) if gaps else {})


def _between(trial: Trial, rng: np.random.Generator, T: int, n: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if trial.draw(st.booleans()):
        found["missing"] = tuple((t, i) for t in range(T) for i in range(n) if rng.random() < 0.3)
    for what in ("zeroed", "resumed", "rewound"):
        if trial.draw(st.booleans()):
            found[what] = tuple(t for t in range(T) if rng.random() < 0.4)
    return found | trial.option("lazily", None, True)


def moderate(trial: Trial, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw gradients that are nowhere near zero, as ε = 0 asks for."""
    return trial.tensor(rng.choice([-1.0, 1.0], shape) * rng.uniform(0.25, 4.0, shape))


def draw_adam_options(trial: Trial, run: dict[str, Any], decays: tuple[float | None, ...]) -> Arguments:
    """Draw Adam's options on a run that has gradients to fit them."""
    run |= trial.option("betas", None, (0.5, 0.75), (0.0, 0.99), (0.9, 0.0), (0.95, 0.9))
    run |= trial.option("eps", None, 1e-3, 0.1, 0.0)
    rng = trial.draw(values()).rng
    if run.get("eps") == 0.0:
        run["grads"] = [moderate(trial, tuple(g.shape), rng) for g in run["grads"]]
        return run | ({"weight_decay": 0.0} if decays[0] is None else {})
    if run.get("betas") == (0.9, 0.0):  # where that makes steps of hundreds of learning rates
        run["grads"] = [_dropping(g, rng) for g in run["grads"]]
    return run | trial.option("weight_decay", *decays)


def _dropping(g: torch.Tensor, rng: np.random.Generator) -> torch.Tensor:
    """Return the gradients [steps, *shape], scaled by a thousandth from some step on."""
    late = torch.arange(len(g), device=g.device) >= int(rng.integers(1, max(2, len(g))))
    return g * torch.where(late, 1e-3, 1.0).to(g.dtype).view(-1, *[1] * (g.ndim - 1))


def _ordinary(name: str) -> Callable[[Trial], Arguments]:
    def ordinary(trial: Trial) -> Arguments:
        params = [trial.tensor([[1.0, -2.0, 0.5]]), trial.tensor([0.25, 3.0])]
        # Three steps: after one of them averages whose bias is corrected say nothing of their weights.
        grads = [
            trial.tensor([[[0.5, -1.0, 2.0]], [[-1.5, 0.75, 1.0]], [[0.25, 2.0, -0.5]]]),
            trial.tensor([[1.0, -0.25], [0.5, 1.5], [-2.0, 0.75]]),
        ]
        return {"params": params, "lr": 0.1, "optimizer": name, "grads": grads}

    return ordinary


def _parts(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [outcome.item(0, i) for i in range(len(arguments["params"]))]


def refusals_of(name: str, options: Mapping[str, tuple[Any, ...]]) -> Callable[[Trial], Iterator[InvalidCall]]:
    """Return the invalid calls of an optimizer: parameters, learning rates and options."""

    def refusals(trial: Trial) -> Iterator[InvalidCall]:
        p = trial.tensor([1.0, 2.0])
        good: Arguments = {"params": [p], "lr": 0.1, "optimizer": name}
        yield InvalidCall("no parameters", {**good, "params": []}, ("params",))
        yield InvalidCall("None for the parameters", {**good, "params": None}, ("params",))
        yield InvalidCall("None among the parameters", {**good, "params": [p, None]}, ("params",))
        for key, bad in {"lr": (-0.1, None, True, float("nan")), **options}.items():
            for value in bad:
                yield InvalidCall(f"{key} = {value!r}", {**good, key: value}, (key,))

    return refusals


_NUMBER = (-0.1, None, True, float("nan"))


_BETAS = ((1.0, 0.9), (0.9, 1.0), (-0.1, 0.9), (0.9, -0.1), (0.9,), 0.9, None, (0.9, float("nan")))


BAD_ADAM_OPTIONS = {"betas": _BETAS, "eps": _NUMBER, "weight_decay": _NUMBER}


def changes_of(name: str, **options: tuple[Any, Any]) -> Callable[[Trial], tuple[Arguments, dict[str, Arguments]]]:
    """Return a draw of a short run, as it is often shown, and of its changes; options: two values by name."""

    def changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
        rng = trial.draw(values(("gaussian",))).rng
        params = [trial.tensor(rng.standard_normal(s)) for s in ((2,), ())]
        grads = [moderate(trial, (3, *p.shape), rng) for p in params]
        a: Arguments = {"params": params, "lr": 0.125, "optimizer": name, "grads": grads}
        a = {**a, **{key: first for key, (first, _) in options.items()}}
        return a, {
            "the first parameter": {**a, "params": [perturbed(trial, params[0], rng), params[1]]},
            "the last parameter's gradients": {**a, "grads": [grads[0], perturbed(trial, grads[1], rng)]},
            "lr": {**a, "lr": 0.25},
            **{key: {**a, key: second} for key, (_, second) in options.items()},
        }

    return changes


def eps_place(claims: Claims) -> dict[str, Any]:
    """Return the claimed place of ε."""
    return {"eps_place": claims.convention("adam.eps")}


def decay_place(claims: Claims) -> dict[str, Any]:
    """Return the claimed place of ε and the claimed decayed parameter."""
    return {**eps_place(claims), "decay_place": claims.convention("adamw.decay")}


def record_of(name: str, draw: Callable[[Trial], Arguments], *forms: Formula, **rest: Any) -> OpInfo:
    """Return the record of an optimizer; forms: its formula, written in one way or more."""
    return OpInfo(
        name=name,
        sample=draw,
        sample_basic=_ordinary(name),
        formulas=forms,
        parts=_parts,
        dtypes=("fp64", "fp32"),
        use_exact_oracle=False,
        **rest,
    )


ADAM_CHANGES = {"betas": ((0.5, 0.75), (0.5, 0.5)), "eps": (0.5, 0.125), "weight_decay": (0.25, 0.5)}
