"""Xavier initialisation as a record: its result is chance, which checks of its own judge."""

from __future__ import annotations

from collections.abc import Iterator

from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.strategies import sizes
from veriformer.verify.trial import Arguments, Trial


def _ordinary(trial: Trial) -> Arguments:
    return {"n_in": trial.draw(sizes()), "n_out": trial.draw(sizes())}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    n = trial.draw(sizes())
    yield Refusal("a negative number of inputs", {"n_in": -n, "n_out": n}, ("n_in",))
    yield Refusal("a negative number of outputs", {"n_in": n, "n_out": -n}, ("n_out",))
    yield Refusal("a bool for a size", {"n_in": True, "n_out": n}, ("n_in",))
    yield Refusal("a fraction for a size", {"n_in": n, "n_out": 2.5}, ("n_out",))
    yield Refusal("no size", {"n_in": None, "n_out": n}, ("n_in",))
    yield Refusal("a number for a generator", {"n_in": n, "n_out": n, "generator": 3}, ("generator",))


XAVIER_NORMAL = Operation(
    name="xavier_normal",
    draw=_ordinary,
    ordinary=_ordinary,
    refusals=_refusals,
    forms=("fp32", "bf16"),
)
