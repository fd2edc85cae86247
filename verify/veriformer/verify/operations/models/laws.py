"""Laws of whole models between calls with and without padding."""

from __future__ import annotations

import torch

from veriformer.verify.judging.arguments import fresh
from veriformer.verify.laws.family import check
from veriformer.verify.operations.models.agreement import EFFORT, ModelExample, lengthened, model_property
from veriformer.verify.operations.models.applies import always, has_mask, has_positions_or_mask
from veriformer.verify.operations.models.drawn import LONGEST
from veriformer.verify.strategies import choice
from veriformer.verify.targets.kinds import MODELS


def _contract(e: ModelExample) -> None:
    """Shape, kind and finiteness of the logits; nothing that was given is changed."""
    e.assert_not_constant(**e.call_options())
    ids, V = e.tokens(), e.subject.vocabulary
    masked = {"mask": e.mask("right")} if e.subject.masked and e.trial.draw(choice(False, True)) else {}
    asked = e.call_options()
    copies = {"way": "whole", "dtype": e.subject.dtype, "ids": ids.clone(), **asked, **fresh_all(masked)}
    outcome = e.trial.raw({**copies, "ids": ids, **masked}, copies)
    e.finite(outcome)
    shape = (*ids.shape, V)
    e.trial.assert_true(
        tuple(outcome.value.shape) == shape,
        f"the logits have shape {tuple(outcome.value.shape)}, expected {shape}",
        f"tuple({outcome.name}.shape) == {shape}",
    )
    for name, given in {"ids": ids, **masked}.items():
        kept = torch.equal(given, copies[name])
        e.trial.assert_true(kept, f"{name} was modified", "False")


def fresh_all(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return copies that a call may do with as it likes."""
    return {name: fresh(x, False) for name, x in given.items()}


def _deterministic(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    e.agree(e.answer("whole", ids=ids, **asked), e.answer("whole", ids=ids, **asked), "logits of the same call again")


def _history(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    plain = e.answer("whole", ids=ids, afresh=True, **asked)
    for n in (LONGEST, e.trial.draw(choice(1, e.n))):
        after = e.answer("after_others", ids=ids, others=e.tokens(n=n), **asked)
        e.agree(after, plain, "logits after other calls")


def _mode(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    before = e.answer("whole", ids=ids, **asked)
    e.agree(e.answer("after_training", ids=ids, **asked), before, "logits after a pass in training mode")


def _batch(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    e.B = max(2, e.B)
    ids, asked = e.tokens(), e.call_options()
    e.agree(e.answer("whole", ids=ids, **asked), e.answer("alone", ids=ids, **asked), "logits in a batch and alone")
    for r in e.rng.choice(e.B, 2, replace=False):  # two: one of them may be the row that others are mixed with
        row = (torch.arange(e.B) == int(r))[:, None].expand(e.B, e.n)
        e.unseen(ids, ~row, row, "logits of one row of a batch", **asked)


def _mask_of_ones(e: ModelExample) -> None:
    asked = e.call_options()
    e.assert_not_constant(**asked)
    ids = e.tokens()
    masked = e.answer("whole", ids=ids, mask=torch.ones_like(ids), **asked)
    e.agree(masked, e.answer("whole", ids=ids, **asked), "logits with a mask of ones")


def _padding(e: ModelExample, side: str) -> None:
    e.assert_not_constant(**e.call_options())
    e.n = max(3, e.n)
    ids, mask, asked = e.tokens(), e.mask(side), e.call_options()
    padded, plain = e.answer("real", ids=ids, mask=mask, **asked), e.answer("unpadded", ids=ids, mask=mask, **asked)
    e.agree(padded, plain, f"logits with padding on the {side}")


def _right_padding(e: ModelExample) -> None:
    _padding(e, "right")


def _left_padding(e: ModelExample) -> None:
    _padding(e, "left")


def _padding_content(e: ModelExample) -> None:
    e.assert_not_constant(**e.call_options())
    e.n = max(3, e.n)
    ids, mask, asked = e.tokens(), e.mask(e.trial.draw(choice("right", "left"))), e.call_options()
    others = torch.where(mask.bool(), ids, e.other(ids))
    e.finite(e.ask("whole", ids=others, mask=mask, **asked))
    e.unseen(ids, ~mask.bool(), mask.bool(), "logits of real tokens beside padding", mask=mask, **asked)


def _double(e: ModelExample) -> None:
    """In fp64 the model can be called, padded on either side, and gives finite results."""
    ids = e.tokens(n=12)
    masked = {"mask": e.mask(e.trial.draw(choice("left", "right")), 12)} if e.subject.masked else {}
    e.finite(e.ask("whole", dtype=torch.float64, ids=ids, **masked, **e.call_options()))
    e.trial.effective.append(True)


CHECKS = tuple(
    check(
        f"{operation}.{name}",
        model_property(body),
        **{"dtypes": ("fp64", "fp32"), "effort": EFFORT, "applies": always, **options},
    )
    for operation in MODELS
    for name, body, options in (
        ("contract", _contract, {}),
        ("double", _double, {"dtypes": ("fp64",), "applies": None}),
        ("deterministic", _deterministic, {}),
        ("history", _history, {}),
        ("mode", _mode, {}),
        ("batch", _batch, {}),
        ("mask_of_ones", _mask_of_ones, {"applies": has_mask}),
        ("right_padding", lengthened(_right_padding), {"applies": has_mask}),
        ("padding_content", lengthened(_padding_content), {"applies": has_mask}),
        (
            "left_padding",
            lengthened(_left_padding),
            {"applies": has_positions_or_mask, "convention": "causal_lm.positions"},
        ),
    )
)
