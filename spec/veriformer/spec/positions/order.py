"""Attention without positions sees no order: permutation equivariance (document 003, section 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Float
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.attention import attention
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.multi_head_attention import multi_head_attention, multi_head_attention_vjp
from veriformer.spec.heads.published import Case
from veriformer.spec.heads.subspaces import ASSUMPTIONS, sample
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector


@step()
def _two_keys() -> Identities:
    """Exchanging two keys and their values among $n + 2$ changes no output, since a sum has no order; exchanges make up
    every permutation.
    """
    # n other keys in any order, and two more: s and v hold scores and values.
    s, v, j, n = vector("s"), vector("v"), index("j"), dimension("n")

    def summed(value: Any) -> Any:
        first, second = (sp.exp(s[n + k]) * value(n + k) for k in (1, 2))
        return second + first + symbolic_sum(sp.exp(s[j]) * value(j), j, n)

    output = symbolic_sum(sp.exp(s[j]) * v[j], j, n + 2) / symbolic_sum(sp.exp(s[j]), j, n + 2)
    yield output, summed(lambda k: v[k]) / summed(lambda k: 1)


@step(scope=Scope.ENUMERATED, detail="3 tokens, a rotation and an exchange (which generate all orders)")
def _formula() -> Identities:
    """Every query has its own row: if the tokens change places, so do their outputs, and nothing else happens."""
    for order in ([1, 2, 0], [1, 0, 2]):
        case = Case(1, 1, n=3)
        o = multi_head_attention(case.xp, case.x[:, order], *case.weights, **case.options)
        yield from entrywise(case.in_full(o), case.as_printed()[order])


_CAT, _MAT = 0.0, 1.0


def _attend(*tokens: float) -> Any:
    """Self-attention of numbers with themselves, one row per token."""
    xp = Float()
    x = xp.asarray(np.reshape(tokens, (1, 1, len(tokens), 1)))
    return attention(xp, x, x, x).value.ravel()


@erratum(
    kind="imprecise",
    source=Source("003", "3, Position Encoding Solution", 113),
    printed=r"\text{``cat sat on mat'' and ``mat on sat cat'' would be processed identically}",
    corrected=r"\text{each word has the same output in both, at its own place}",
)
def _not_identical() -> Evidence:
    there, back = _attend(_CAT, _MAT), _attend(_MAT, _CAT)
    return Evidence("tokens 0, 1 and then 1, 0: the first output", f"{there[0]:.3f}", f"{back[0]:.3f}")


@erratum(
    kind="contradictory",
    source=Source("003", "6, Dense Vector Representation Learning", 368),
    printed=r"\text{the permutation-invariance of attention mechanisms}",
    corrected=r"\text{equivariance, as in lines 30, 113 and 750}",
)
def _not_invariant() -> Evidence:
    there, back = (str(_attend(*tokens).round(3)) for tokens in ((_CAT, _MAT), (_MAT, _CAT)))
    return Evidence("tokens 0, 1 and then 1, 0: all outputs of the second", there, back)


EQUATIONS = (
    Equation(
        slug="permutation-equivariance",
        number=None,
        title="Attention without positions sees no order",
        statement=r"f(\Pi X) = \Pi f(X)",
        sources=(
            Source("003", "2", 30),
            Source("003", "3, Position Encoding Solution", 113),
            Source("003", "9, Attention as Differentiable Key-Value Retrieval", 750),
        ),
        symbols=(
            Symbol("f", r"\mathbb{R}^{n \times d} \to \mathbb{R}^{n \times d}", "self-attention without a mask"),
            Symbol(r"\Pi", r"\{0, 1\}^{n \times n}", "a permutation of the tokens"),
        ),
        assumptions=(
            *ASSUMPTIONS,
            Assumption("no token is hidden from another", lambda a: "attention_mask" not in a and "is_causal" not in a),
        ),
        sample=sample,
        formula=multi_head_attention,
        vjp=multi_head_attention_vjp,
        steps=(_two_keys, _formula),
        errata=(_not_identical, _not_invariant),
    ),
)
