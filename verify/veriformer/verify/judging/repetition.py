"""Detection of nondeterministic failures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch

from veriformer.verify.judging.judge import Violation
from veriformer.verify.judging.trial import Trial
from veriformer.verify.targets.seeding import seed_generators

REPETITIONS = 40
"""Maximum number of repetitions: of a call that is wrong one time in ten, all are right once in seventy."""

SECONDS = 0.5

_SAID = "the same call, made {done} times, gave {others} times another result than at first"


def unrepeatable(trial: Trial) -> str | None:
    """Return a message with the number of repetitions of an example's last call that gave another result; None if none
    did.

    Every repetition draws the same random numbers. What takes long is repeated less often, but once.
    """
    if not trial.calls or trial.calls[-1].refusal is not None:
        return None
    began, first, others, done = time.perf_counter(), _result(trial), 0, 1
    while done < REPETITIONS and (done < 2 or time.perf_counter() - began < SECONDS):
        others += not _same(first, _result(trial))
        done += 1
    return _SAID.format(done=done, others=others) if others else None


def comes_and_goes(messages: Sequence[str]) -> bool:
    """Return whether the failing rows with these messages fail by chance: in at least a third, repetition gave another
    result.

    What fails seldom is not met again by every repetition.
    """
    beginning = _SAID.partition("{")[0]
    return 3 * sum(beginning in message for message in messages) >= max(1, len(messages))


def _result(trial: Trial) -> Any:
    with torch.random.fork_rng():
        seed_generators(0)
        try:
            return trial.repeat(trial.calls[-1])
        except Violation as violation:
            return str(violation)


def _same(one: Any, other: Any) -> bool:
    try:
        return _equal(one, other)
    except Exception:  # what cannot be compared, such as a tensor without numbers
        return True


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        alike = one.shape == other.shape and one.dtype == other.dtype
        return alike and bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, torch.Tensor) == isinstance(other, torch.Tensor) and (
        not isinstance(one, str | int | float | bool) or one == other
    )
