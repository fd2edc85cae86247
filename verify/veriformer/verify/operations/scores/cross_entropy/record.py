"""Cross entropy as a record."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis.strategies as st

from veriformer.verify.judging.op_info import Index, InvalidCall
from veriformer.verify.judging.trial import Arguments, Trial
from veriformer.verify.operations.derived import operation
from veriformer.verify.operations.scores.along_axis import bulk_shape
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
    ordinary_rows,
    with_ignored,
)
from veriformer.verify.strategies import choice, values


def _slice(trial: Trial) -> tuple[Arguments, Arguments, dict[str, Index]]:
    """Draw a call with unreduced losses, and one of its rows alone."""
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
    logits = 2.0 * kind.array(*bulk_shape(trial))
    target = with_ignored(kind.rng, classes(kind.rng, logits.shape[:-1], logits.shape[-1]), IGNORE_INDEX)
    smoothing = trial.draw(choice(0.0, 0.1))
    return {"logits": trial.tensor(logits), "target": ids(target), "label_smoothing": smoothing, "reduction": "none"}


def _bad_cross_entropy(trial: Trial, good: Arguments) -> Iterator[InvalidCall]:
    yield from bad_targets(trial, good)
    given = {"logits": trial.tensor([[0.5, -1.0, 2.0]])}
    yield InvalidCall("a probability below 0", {**given, "target": trial.tensor([[-0.5, 0.5, 1.0]])}, ("target",))
    yield InvalidCall("a probability above 1", {**given, "target": trial.tensor([[1.5, 0.0, 0.0]])}, ("target",))
    yield InvalidCall("too few probabilities", {**given, "target": trial.tensor([[0.5, 0.5]])}, ("target", "logits"))


CROSS_ENTROPY = operation(
    "cross_entropy",
    sample=draw_cross_entropy,
    sample_basic=ordinary_rows,
    also=(loss_by_total,),
    also_gradients=(loss_vjp_by_chain, loss_vjp_by_total),
    refuses=_bad_cross_entropy,
    batch_slice=_slice,
    argument_perturbations=_changes,
    sample_accuracy=_bulk,
    sample_large=lambda trial: draw_cross_entropy(trial) if trial.draw(choice(False, True)) else long_rows(trial),
)
