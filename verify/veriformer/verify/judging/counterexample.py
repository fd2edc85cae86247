"""Conversion of a violation into a Counterexample: arguments, numbers and a script."""

from __future__ import annotations

import numpy as np
import torch

from veriformer.verify.contract.features import present
from veriformer.verify.contract.ordinary import is_ordinary
from veriformer.verify.judging.judge import Reference, Violation, ratios
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import Trial
from veriformer.verify.results import Counterexample
from veriformer.verify.scripts.script import LARGE, describe, script, within_bound
from veriformer.verify.targets.target import Target

SHOWN = 16
"""Maximum number of entries that the script of a large result judges."""


def size(trial: Trial) -> int:
    """Return the total number of entries of the tensor arguments of all calls of an example."""
    values = [value for call in trial.calls for value in call.arguments.values()]
    flat = [item for value in values for item in (value if isinstance(value, list | tuple) else [value])]
    return sum(item.numel() for item in flat if isinstance(item, torch.Tensor))


def ordinary(trial: Trial) -> bool:
    """Return whether every call of an example is ordinary."""
    return all(
        call.refusal is None
        and is_ordinary(call.operation, present(call.operation, call.arguments), call.arguments, call.cotangent)
        for call in trial.calls
    )


def numbers(x: object) -> object:
    """Convert arrays to nested lists."""
    return x.tolist() if isinstance(x, np.ndarray) else x


def _judged(violation: Violation) -> list[str]:
    """Return the lines that repeat a judgement: of every entry, or of the worst of very many."""
    observed, exact, bound = (np.asarray(x, np.float64) for x in (violation.observed, violation.exact, violation.bound))
    if exact.size <= LARGE:
        return within_bound(violation.expression, exact.tolist(), bound.tolist())
    worst = np.argsort(-ratios(observed, Reference(exact, bound)), axis=None, kind="stable")[:SHOWN]
    where = f"{violation.expression}.flatten()[{worst.tolist()!r}]"
    return within_bound(where, exact.flat[worst].tolist(), bound.flat[worst].tolist())


def counterexample(row: CheckRun, target: Target, violation: Violation, trial: Trial) -> Counterexample:
    """Return the record of a violation: arguments, numbers and script."""
    title = f"{row.key} on {target.spec}: {violation}".replace('"""', "'''").replace("\\", "/")
    observed, exact, bound = (numbers(x) for x in (violation.observed, violation.exact, violation.bound))
    lines = [*violation.lines, *(_judged(violation) if violation.expression else [])] or ["raise SystemExit(0)"]
    return Counterexample(
        arguments={key: describe(value) for call in trial.calls[-1:] for key, value in call.arguments.items()},
        observed=observed,
        exact=exact,
        bound=bound,
        script=script(title, target.loader, trial.calls, lines),
        scalars=size(trial),
        ordinary=ordinary(trial),
    )
