"""Cross-attention: queries of one text look at the tokens of another (document 003, sections 3 and 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.heads.published import Case
from veriformer.spec.heads.subspaces import ASSUMPTIONS, any_length, sample
from veriformer.spec.heads.weights import COSTS
from veriformer.spec.proofs.identities import entrywise


@step(scope=Scope.ENUMERATED, detail="one head on 2 tokens and 3 of context, two heads on 1 and 2")
def _formula() -> Identities:
    """With a context, queries come from X, keys and values from C, for lengths of their own."""
    for case in (Case(1, 1, n=2, context=3), Case(2, 2, n=1, context=2)):
        o = multi_head_attention(case.xp, case.x, *case.weights, **case.options)
        yield from entrywise(case.in_full(o), case.as_printed())


@step(scope=Scope.ENUMERATED, detail="3 tokens of context, a rotation and an exchange (which generate all orders)")
def _no_order() -> Identities:
    """The order of the context changes nothing at all, unless its tokens carry their positions."""
    for order in ([1, 2, 0], [1, 0, 2]):
        case = Case(1, 1, n=1, context=3)
        moved = case.options | {"context": case.options["context"][:, order]}
        o = multi_head_attention(case.xp, case.x, *case.weights, **moved)
        yield from entrywise(case.in_full(o), case.as_printed())


@step(scope=Scope.ENUMERATED, detail="3 tokens of context, the last or the first hidden")
def _padding() -> Identities:
    """A context whose padding is hidden is the context without padding, on either side."""
    for seen in ([True, True, False], [False, True, True]):
        case = Case(1, 1, n=1, context=3)
        o = multi_head_attention(case.xp, case.x, *case.weights, **case.options, attention_mask=[seen])
        case.context = case.options["context"][:, seen]
        yield from entrywise(case.in_full(o), case.as_printed())


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    arguments = sample(rng, 2, 2)
    return {**arguments, "context": rng.normal(size=(2, int(rng.integers(1, 5)), arguments["x"].shape[-1]))}


EQUATIONS = (
    Equation(
        slug="cross-attention",
        number=None,
        title="Cross-attention",
        statement=r"\text{head}_i = \text{Attention}(X W_i^Q, C W_i^K, C W_i^V)",
        sources=(
            Source("003", "3, Complete Transformer Architecture", 135),
            Source("003", "9, Attention as Differentiable Key-Value Retrieval", 755),
        ),
        symbols=(
            Symbol("X", r"\mathbb{R}^{n_q \times d}", "the tokens that ask"),
            Symbol("C", r"\mathbb{R}^{n_k \times d_c}", "the tokens that are looked at", "X itself in self-attention"),
        ),
        assumptions=(
            *ASSUMPTIONS,
            Assumption("the context has tokens", lambda a: a["context"].shape[1] > 0),
        ),
        sample=_sample,
        formula=multi_head_attention,
        vjp=multi_head_attention_vjp,
        steps=(any_length, _formula, _no_order, _padding),
        costs=COSTS,
    ),
)
