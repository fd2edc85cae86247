"""The masked language model's objective as a record: cross entropy of labels, averaged over those that count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from veriformer.spec.language.masked_lm_loss import masked_lm_loss, masked_lm_loss_vjp
from veriformer.verify.operation import Operation, Refusal
from veriformer.verify.operations import loss_forms
from veriformer.verify.operations.losses import bad_targets, changed_targets, draw_perplexity, long_rows, ordinary_rows
from veriformer.verify.trial import Arguments, Trial


def labelled(a: Arguments) -> Arguments:
    """The same call with its target under the name of labels."""
    return {"labels" if key == "target" else key: value for key, value in a.items()}


def _options(a: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in a.items() if key not in ("logits", "labels")}


def _loss(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [masked_lm_loss(xp, a["logits"], a["labels"], **_options(a))]


def _vjp(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": masked_lm_loss_vjp(xp, a["logits"], a["labels"], g, **_options(a))}


def _by_total(xp: Any, a: Mapping[str, Any]) -> list[Any]:
    return [loss_forms.loss(xp, a["logits"], a["labels"], **_options(a))]


def _vjp_by_chain(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": loss_forms.loss_gradient(xp, a["logits"], a["labels"], g, **_options(a))}


def _vjp_by_total(xp: Any, a: Mapping[str, Any], g: Any) -> dict[str, Any]:
    return {"logits": loss_forms.loss_gradient(xp, a["logits"], a["labels"], g, kept=True, **_options(a))}


def _changes(trial: Trial) -> tuple[Arguments, dict[str, Arguments]]:
    a, changed = changed_targets(trial)
    return labelled(a), {("labels" if what == "target" else what): labelled(b) for what, b in changed.items()}


def _refusals(trial: Trial) -> Iterator[Refusal]:
    for bad in bad_targets(trial):
        names = tuple("labels" if name == "target" else name for name in bad.names)
        yield replace(bad, arguments=labelled(bad.arguments), names=names)


MASKED_LM_LOSS = Operation(
    name="masked_lm_loss",
    draw=lambda trial: labelled(draw_perplexity(trial)),
    ordinary=lambda trial: labelled(ordinary_rows(trial)),
    formulas=(_loss, _by_total),
    vjps=(_vjp, _vjp_by_chain, _vjp_by_total),
    inputs=("logits",),
    refusals=_refusals,
    changes=_changes,
    long=lambda trial: labelled(long_rows(trial)),
    forms=("fp32", "bf16"),
)
