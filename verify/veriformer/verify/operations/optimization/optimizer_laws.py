"""Laws of all optimizers: long runs, resuming, gaps, independence, unchanged tensors, and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.spec.arithmetic import RunningError
from veriformer.verify.contract.dtypes import HALVES
from veriformer.verify.judging.arithmetic import over_float64
from veriformer.verify.judging.check import Check
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.outcome import Observation, Outcome
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import equal
from veriformer.verify.laws.family import check, over
from veriformer.verify.operations.optimization.optimizers import draw_run, moderate
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import choice, extent, values

Law = Callable[[RunningError, Mapping[str, Any], int], Any]
"""From the arithmetic, the lifted arguments and a parameter to what that parameter is in the end."""


def ends_at(operation: OpInfo, trial: Trial, arguments: Arguments, law: Law) -> None:
    """Judge the end of a run by a law, within the bound of the law and that of the run."""
    xp = over_float64(trial.dtype_name)
    lifted = operation.lift(trial, arguments, xp)
    outcome = trial.call(arguments)
    references = operation.exact(trial, arguments)
    for i, (observed, run) in enumerate(zip(operation.parts(outcome, arguments), references, strict=True)):
        exact, bound = xp.judgeable(law(xp, lifted, i))
        last = of_steps(run, -1)
        trial.assert_within_bound(
            select_steps(observed, -1), Reference(exact, bound + last.bound), f"the end of parameter {i}"
        )


IN_TWO_FORMATS = {"dtypes": ("fp64", "fp32"), "effort": 0.5}


_LONG = (64, 300)


_BETWEEN = ("missing", "zeroed", "resumed", "rewound")


def options_of(arguments: Arguments) -> dict[str, Any]:
    """Return a run's arguments without the actions between its steps."""
    return {key: value for key, value in arguments.items() if key not in _BETWEEN}


def select_steps(observed: Observation, places: Any) -> Observation:
    """Select some of the steps of a run."""
    return Observation(observed.value[places], f"{observed.expression}[{places!r}]", observed.sources)


def of_steps(reference: Reference, places: Any) -> Reference:
    """Return the reference of these steps of the run."""
    return Reference(reference.exact[places], reference.bound[places])


def long_run(operation: OpInfo, trial: Trial) -> None:
    """Judge a run of a hundred steps or two, all of them; or one of many parameters, or of one with many entries."""
    if trial.draw(choice(False, True)):
        trial.only_large(8.0)
        whole = operation.sample(trial)
        agrees(trial, operation, whole, trial.call(whole), operation.exact(trial, whole))
        return
    drawn = operation.sample(trial)
    extra = {key: drawn[key] for key in ("beta", "betas", "eps", "weight_decay") if key in drawn}
    run = draw_run(operation.name, trial, steps=trial.draw(extent(*_LONG)))
    if extra.get("eps") == 0.0:
        rng = trial.draw(values()).rng
        run["grads"] = [moderate(trial, tuple(g.shape), rng) for g in run["grads"]]
    arguments = {**run, **extra, "params": run["params"][:1], "grads": run["grads"][:1]}
    agrees(trial, operation, arguments, trial.call(arguments), operation.exact(trial, arguments))


def _resume(operation: OpInfo, trial: Trial) -> None:
    drawn = operation.sample(trial)
    whole = {**options_of(drawn), "params": [p.contiguous() for p in drawn["params"]]}
    if "missing" in drawn:
        whole["missing"] = drawn["missing"]
    T = len(drawn["grads"][0])
    rng = trial.draw(values()).rng
    if trial.draw(st.booleans()):  # the first parameter has no gradient until after the save, and so nothing to save
        others = [(t, i) for t, i in drawn.get("missing", ()) if i]
        whole["missing"] = (*others, *((t, 0) for t in range(T // 2)))
    what = trial.draw(choice("resumed", "rewound"))
    parted = {**whole, what: tuple(int(t) for t in sorted({T // 2, *rng.integers(0, T, 2)}))}
    a, b = trial.call(whole), trial.call(parted)
    agrees(trial, operation, whole, a, operation.exact(trial, whole))
    for one, other in zip(operation.parts(a, whole), operation.parts(b, parted), strict=True):
        trial.assert_true(
            torch.equal(one.value, other.value),
            f"a run that was {what} before the steps {parted[what]} is another one",
            f"torch.equal({one.expression}, {other.expression})",
        )


def _gaps(operation: OpInfo, trial: Trial) -> None:
    whole = options_of(operation.sample(trial))
    T = len(whole["grads"][0])
    rng = trial.draw(values()).rng
    taken = sorted({T - 1, *(t for t in range(T) if rng.random() < 0.6)})
    gapped = {**whole, "missing": tuple((t, 0) for t in range(T) if t not in taken)}
    dense = {**whole, "params": whole["params"][:1], "grads": [whole["grads"][0][taken]]}
    run = trial.call(gapped)
    observed = operation.parts(run, gapped)[0]
    _stays(trial, observed, whole["params"][0], taken)
    of_run, of_dense = operation.exact(trial, gapped)[0], operation.exact(trial, dense)[0]
    alone = operation.parts(trial.call(dense), dense)[0]
    equal(trial, select_steps(observed, taken), alone, of_steps(of_run, taken), of_dense, "the steps around the gaps")


def _stays(trial: Trial, observed: Observation, start: torch.Tensor, taken: list[int]) -> None:
    for t in range(len(observed.value)):
        if t not in taken:
            before = observed.value[t - 1] if t else start
            said = f"{observed.expression}[{t - 1}]" if t else literal(start)
            trial.assert_true(
                torch.equal(observed.value[t], before),
                f"a parameter without a gradient moved in step {t}",
                f"torch.equal({observed.expression}[{t}], {said})",
            )


def _independence(operation: OpInfo, trial: Trial) -> None:
    whole = options_of(operation.sample(trial))
    if len(whole["params"]) == 1:
        others = {"params": whole["params"][0] + 1, "grads": whole["grads"][0] * 0.5}
        whole |= {key: [whole[key][0], other] for key, other in others.items()}
    turned = {**whole, "params": whole["params"][::-1], "grads": whole["grads"][::-1]}
    references = operation.exact(trial, whole)
    observed = operation.parts(trial.call(whole), whole)
    reversed_ = operation.parts(trial.call(turned), turned)[::-1]
    i = int(trial.draw(values()).rng.integers(len(observed)))
    single = {**whole, "params": [whole["params"][i]], "grads": [whole["grads"][i]]}
    alone = operation.parts(trial.call(single), single)[0]
    for one, other, reference in zip(observed, reversed_, references, strict=True):
        equal(trial, one, other, reference, reference, "a parameter trained in another order")
    equal(trial, observed[i], alone, references[i], references[i], "a parameter trained alone")


def _kept(outcome: Outcome, arguments: Arguments) -> list[Observation]:
    return [outcome.item(1, i) for i in range(len(arguments["params"]))]


def _gradients_kept(operation: OpInfo, trial: Trial) -> None:
    arguments = operation.sample(trial)
    T = len(arguments["grads"][0])
    arguments = {**arguments, "zeroed": tuple(range(0, T, 2))}
    missing = arguments.get("missing", ())
    for i, kept in enumerate(_kept(trial.call(arguments), arguments)):
        given = arguments["grads"][i].clone()
        for t in range(T):
            if (t, i) in missing:
                given[t] = 0
        same = torch.equal(kept.value, given)
        trial.assert_true(
            same, f"the gradient of parameter {i} was modified", f"torch.equal({kept.expression}, {literal(given)})"
        )


def _no_rate(operation: OpInfo, trial: Trial) -> None:
    arguments = {**operation.sample(trial), "lr": 0.0}
    for i, observed in enumerate(operation.parts(trial.call(arguments), arguments)):
        start = arguments["params"][i]
        trial.assert_true(
            bool((observed.value == start).all()),
            f"parameter {i} moved at a learning rate of 0",
            f"bool(({observed.expression} == {literal(start)}).all())",
        )


def _half_precision(operation: OpInfo, trial: Trial) -> None:
    rng = trial.draw(values()).rng
    T = trial.draw(st.integers(1, 6))
    sizes = rng.choice([0.0, 1e-6, 1.0, 300.0, 3e4], (T, 1))
    grads = trial.tensor(sizes * rng.choice([-1.0, 1.0, 0.5], (T, 4)))
    params = trial.tensor(rng.standard_normal(4))
    drawn = operation.sample(trial)
    extra = {key: drawn[key] for key in ("beta", "betas", "weight_decay") if key in drawn}
    arguments = {"params": [params], "lr": 1e-3, "optimizer": operation.name, "grads": [grads], **extra}
    exact = operation.exact(trial, arguments)[0].exact
    for observed in operation.parts(trial.call(arguments), arguments):
        ordinary = torch.as_tensor(np.abs(exact) < 0.5 * trial.format.max)
        trial.assert_true(
            bool((observed.value.isfinite() | ~ordinary).all()),
            "a parameter is not finite",
            f"bool(({observed.expression}.isfinite() | ~{literal(ordinary)}).all())",
        )


def laws_of_optimizers(operation: OpInfo) -> tuple[Check, ...]:
    """Return the laws that every optimizer keeps."""
    halves = partial(_half_precision, operation)
    return (
        *over((operation,), "resume", _resume, effort=0.5),
        *over((operation,), "gaps", _gaps, effort=0.5),
        *over((operation,), "independence", _independence, effort=0.5),
        *over((operation,), "gradients_kept", _gradients_kept, effort=0.5),
        *over((operation,), "no_rate", _no_rate, effort=0.25),
        check(f"{operation.name}.half_precision", halves, dtypes=HALVES, effort=0.5),
    )
