"""Draws shared by the records of both normalisations: rows of many kinds, long and bad ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veriformer.verify.judging.op_info import InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.strategies import choice, leading_shapes, sizes, values

_WIDTHS = (3, 4, 5, 6, 7, 8, 4, 6, 8, 5, 2, 1)
"""Rows of two are ±1 whatever they hold, and rows of one are nothing: seldom drawn."""


def _leading(trial: Trial, d: int) -> tuple[int, ...]:
    """Return any leading axes; or the last as long as the rows, so that both could be taken for them; or no rows at
    all.
    """
    kind = trial.draw(choice("any", "any", "any", "square", "square", "none"))
    if kind == "any":
        return trial.draw(leading_shapes())
    return (*trial.draw(leading_shapes(1)), d if kind == "square" else 0)


def draw_rows(trial: Trial, parameters: tuple[str, ...]) -> dict[str, Any]:
    """Draw rows of many kinds, each parameter or none of them, and any ``eps``."""
    large = trial.rows((2, 10000))
    d = trial.fitted("d", trial.draw(choice(*_WIDTHS)) if large is None else large[-1])
    lead = _leading(trial, d) if large is None else large[:-1]
    x = trial.draw(values()).array(*lead, d)
    arguments: dict[str, Any] = {"x": trial.tensor(x)}
    for name in parameters:
        if trial.draw(choice(False, True, True, True)):
            arguments[name] = trial.given(name, trial.draw(values()).array(d))
    eps = trial.draw(choice(None, 1e-5, 0.01, 1.0, 1e-12, 0.0))
    return trial.supported(arguments if eps is None else {**arguments, "eps": eps})


def many_rows(trial: Trial, parameters: tuple[str, ...], rows: tuple[int, int]) -> Arguments:
    """Draw many rows, so that the sums over them show how they were taken."""
    trial.only_large()
    shape = trial.rows((24, 2000), rows, least_rank=1)
    assert shape is not None
    kind = trial.draw(values(("gaussian", "one-signed", "spread")))
    weights = trial.draw(values(("gaussian", "one-signed", "spread")))
    made = {name: trial.given(name, weights.array(shape[-1])) for name in parameters}
    return {"x": trial.tensor(kind.array(*shape)), **made}


def ordinary_rows(trial: Trial) -> Arguments:
    """Draw Gaussian rows."""
    lead, d = trial.draw(leading_shapes()), trial.fitted("d", trial.draw(sizes(2)))
    return {"x": trial.tensor(trial.draw(values(("gaussian",))).array(*lead, d))}


def empty_rows(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    """Yield rows without an entry."""
    yield InvalidCall("an empty axis", {"x": good["x"][..., :0]}, ("x",))
