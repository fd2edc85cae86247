"""Laws of encoder-decoders: influence of the source, and of padding around it."""

from __future__ import annotations

from veriformer.verify.laws.family import check
from veriformer.verify.operations.models.agreement import EFFORT, ModelExample, model_property
from veriformer.verify.operations.models.applies import always, has_cache, has_source_mask
from veriformer.verify.strategies import choice


def _side(e: ModelExample) -> str:
    """Draw the side of padding: right where positions are the caller's and no argument takes them."""
    return "right" if e.subject.positions == "caller" else e.trial.draw(choice("right", "left"))


def _source_padding(e: ModelExample) -> None:
    e.assert_not_constant(**e.call_options())
    ids, side = e.tokens(), _side(e)
    m = e.trial.draw(choice(4, 12, 6))
    source, mask = e.tokens(n=m), e.mask(side, m)
    padded = e.answer("whole", ids=ids, source=source, source_mask=mask)
    plain = e.answer("without_source_padding", ids=ids, source=source, source_mask=mask)
    e.agree(padded, plain, f"logits with padding on the {side} of the source")
    if has_cache(e.trial.target, e.trial.operation, e.trial.row_dtype) is None:
        cached = e.answer("in_parts", ids=ids, splits=[e.split()], source=source, source_mask=mask)
        e.agree(cached, plain, f"logits through the cache with padding on the {side} of the source")


def _source_reach(e: ModelExample) -> None:
    e.B = 1
    e.assert_not_constant(**e.call_options())
    ids, source = e.tokens(), e.tokens(n=4)
    at = int(e.rng.integers(4))
    others = source.clone()
    others[:, at] = e.other(source)[:, at]
    one, two = (e.ask("whole", ids=ids, source=x) for x in (source, others))
    e.finite(one), e.finite(two)
    moved = bool((one.value != two.value).any(-1).all())
    said = f"bool(({one.name} != {two.name}).any(-1).all())"
    e.trial.assert_true(moved, f"the source's token {at} does not change the logits everywhere", said)


CHECKS = (
    check(
        "seq2seq_lm.source_padding",
        model_property(_source_padding),
        dtypes=("fp64", "fp32"),
        effort=EFFORT,
        applies=has_source_mask,
        convention="causal_lm.positions",
    ),
    check(
        "seq2seq_lm.source_reach", model_property(_source_reach), dtypes=("fp64", "fp32"), effort=EFFORT, applies=always
    ),
)
