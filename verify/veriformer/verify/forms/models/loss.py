"""Labels of a language model's own loss: shifted inside or not, and the index it ignores."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor, nn

from veriformer.verify.forms.language_model import Calling, LanguageModel, logits_among, loss_among, wrap_model
from veriformer.verify.forms.models.small_model import SIZES, quietly, tokens

_MORE = ("aux", "balance", "router", "smoothing", "z_loss")
"""Parts of names by which a model adds something to its loss."""

LABELS, IGNORED = ("shifted inside", "the next tokens"), ("-100", "-1")
SPREAD = 1e-3
"""Where single precision leaves off and another result begins, relative to the largest number."""

DRAWS = range(1, 9)
"""Seeds of the labels by which a loss is recognised."""


def label_readings(model: nn.Module, how: Calling) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """Return the readings of labels, where it gives a loss: none, with the reason, where it is not the plain
    cross-entropy."""
    if not how.targets:
        return {}, ()
    try:
        result = quietly(lambda: model(**{how.ids: tokens(), how.targets: tokens(seed=1)}, **how.always))
    except Exception:
        return {}, (f"its loss is left out: a call with {how.targets} raised",)
    if loss_among(result, model) is None:
        return {}, ()
    code = getattr(type(model).forward, "__code__", None)
    parts = {*(name for name, _ in model.named_modules()), *(code.co_names if code else ())}
    if any(more in part for part in parts for more in _MORE):
        return {}, ("its loss is left out: it has other terms",)
    tried = {(one, ignored): loss_is_right(model, how, one, int(ignored)) for one in LABELS for ignored in IGNORED}
    whole = {one: loss_is_right(model, how, one, None) for one in LABELS}
    if any(whole.values()) and not any(tried.values()):
        return {}, ("its loss is left out: which targets it ignores is not known",)
    return {"labels": LABELS, "ignored": IGNORED}, ()


def loss_is_right(model: nn.Module, how: Calling, labels: str, ignored: int | None) -> bool:
    """Return whether the loss is the mean cross-entropy of the labels; ignored: None for a row that has none to
    ignore."""
    # A fresh model has a loss of about log V whatever its labels: one draw of them would not tell a wrong reading.
    return all(_is_right_for(tokens(seed=seed), model, how, labels, ignored) for seed in DRAWS)


def _is_right_for(drawn: Tensor, model: nn.Module, how: Calling, labels: str, ignored: int | None) -> bool:
    reading = dataclasses.replace(how, labels=labels, ignored=-100 if ignored is None else ignored)
    ids = tokens()
    if ignored is None:  # both readings agree on what is scored only where the end of a row is not
        given = drawn if labels == LABELS[0] else torch.cat((drawn[:, 1:], drawn[:, :1]), 1)
        arguments = {how.ids: ids, how.targets: given}
        result = quietly(lambda: model(**arguments, **how.always))
        loss = loss_among(result, model)
        logits = logits_among(result, ids, SIZES["vocabulary"])
        if logits is None:  # it gives the loss alone
            logits = logits_among(quietly(lambda: model(**{how.ids: ids}, **how.always)), ids, SIZES["vocabulary"])
        if logits is None:
            return False
        scored = (logits[:, :-1], given[:, 1:]) if labels == LABELS[0] else (logits, given)
    else:
        drawn[0, 2] = -100
        try:
            answer = quietly(lambda: wrap_model(model, reading, SIZES["vocabulary"])(ids, labels=drawn))
        except Exception:
            return False
        loss, scored = answer.loss, (answer.logits[:, :-1], drawn[:, 1:])
    if loss is None:
        return False
    predicted, expected = scored
    right = nn.functional.cross_entropy(predicted.double().flatten(0, 1), expected.flatten())
    return bool((loss.double() - right).abs() <= SPREAD * right.abs())


def loss_is_answered(model: LanguageModel, ids: Tensor) -> bool:
    """Return whether a call with labels, some of them to be ignored, gives a loss."""
    labels = tokens(seed=1)
    labels[0, 2] = -100
    try:
        return quietly(lambda: model(ids, labels=labels)).loss is not None
    except Exception:
        return False
