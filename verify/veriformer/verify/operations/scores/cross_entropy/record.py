"""Cross entropy as a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import hypothesis.strategies as st

from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.verify.judging.operation import Index, Operation, Refusal
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.scores.targets import (
    IGNORE_INDEX,
    bad_targets,
    changed_targets,
    classes,
    draw_cross_entropy,
    ids,
    long_rows,
    loss_by_total,
    loss_vjp_by_chain,
    loss_vjp_by_total,
    options_of,
    ordinary_rows,
    with_ignored,
)
from veriformer.verify.strategies import choice, values


def _cross_entropy(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [cross_entropy(xp, a["logits"], a["target"], **options_of(a))]


def _cross_entropy_vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": cross_entropy_vjp(xp, a["logits"], a["target"], g, **options_of(a))[0]}


def _slice(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """One row of several, with the losses not reduced."""
    whole = {**draw_cross_entropy(trial), "reduction": "none"}
    if whole["logits"].ndim == 1:
        whole = {**whole, "logits": whole["logits"][None], "target": whole["target"][None]}
    i = trial.draw(st.integers(0, whole["logits"].shape[0] - 1))
    index = (slice(i, i + 1),)
    alone = {**whole, "logits": whole["logits"][index], "target": whole["target"][index]}
    return whole, alone, {"result": index, "logits": index}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a, changed = changed_targets(trial)
    changed |= {"label_smoothing": {**a, "label_smoothing": 0.5}, "reduction": {**a, "reduction": "sum"}}
    return a, changed


def _bulk(trial: Trial) -> Arguments:
    kind = trial.draw(values(("gaussian", "one-signed", "ties")))
    logits = 2.0 * kind.array(60, 40)
    target = with_ignored(kind.rng, classes(kind.rng, (60,), 40), IGNORE_INDEX)
    smoothing = trial.draw(choice(0.0, 0.1))
    return {"logits": trial.tensor(logits), "target": ids(target), "label_smoothing": smoothing, "reduction": "none"}


def _bad_cross_entropy(trial: Trial) -> Iterator[Refusal]:
    yield from bad_targets(trial)
    good = ordinary_rows(trial)
    given = {"logits": trial.tensor([[0.5, -1.0, 2.0]])}
    yield Refusal("smoothing below 0", {**good, "label_smoothing": -0.1}, ("label_smoothing",))
    yield Refusal("smoothing above 1", {**good, "label_smoothing": 1.1}, ("label_smoothing",))
    yield Refusal("a bool for a number", {**good, "label_smoothing": True}, ("label_smoothing",))
    yield Refusal("an unknown reduction", {**good, "reduction": "average"}, ("reduction",))
    yield Refusal("a probability below 0", {**given, "target": trial.tensor([[-0.5, 0.5, 1.0]])}, ("target",))
    yield Refusal("a probability above 1", {**given, "target": trial.tensor([[1.5, 0.0, 0.0]])}, ("target",))
    yield Refusal("too few probabilities", {**given, "target": trial.tensor([[0.5, 0.5]])}, ("target", "logits"))


CROSS_ENTROPY = Operation(
    name="cross_entropy",
    draw=draw_cross_entropy,
    ordinary=ordinary_rows,
    formulas=(_cross_entropy, loss_by_total),
    vjps=(_cross_entropy_vjp, loss_vjp_by_chain, loss_vjp_by_total),
    inputs=("logits",),
    refusals=_bad_cross_entropy,
    part=_slice,
    changes=_changes,
    bulk=_bulk,
    long=long_rows,
)
