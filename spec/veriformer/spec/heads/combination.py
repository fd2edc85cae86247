"""Heads together: their outputs side by side, and projected (equation 27)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.equation import Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.heads.any_heads import AnyHeads
from veriformer.spec.heads.multi_head_attention import concat, multi_head_attention, multi_head_attention_vjp, split
from veriformer.spec.heads.published import Case
from veriformer.spec.heads.subspaces import ASSUMPTIONS, SYMBOLS, over, sample
from veriformer.spec.heads.weights import COSTS
from veriformer.spec.proofs.any_length import entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


@step()
def _one_more_column() -> Identities:
    r"""A further column $o_{D+1}$ adds $o_{D+1} W^O_{D+1}$ to the product. By induction the product of columns side by
    side is the sum of the products of any groups of them: $\text{Concat}(\text{head}_1, \ldots) W^O = \sum_i
    \text{head}_i W^O_i$ with the rows of $W^O$ that belong to head i.
    """
    o, w, c, a, n = vector("o"), vector("Wo"), index("c"), index("a"), dimension("D")
    yield symbolic_sum(o[c] * w[c, a], c, n + 1), symbolic_sum(o[c] * w[c, a], c, n) + o[n + 1] * w[n + 1, a]


@step()
def _sum_of_heads() -> Identities:
    r"""Hence the output is $\sum_j \mathbf{x}_j \sum_h p_{hj} W^V_h W^O_h$: a head adds, from each token j, its
    features through one matrix $W^V_h W^O_h$, weighted by $p_{hj}$. Heads add up and do not read each other.
    """
    # Any weights p[h, j] of head h on token j; b runs over the features of the model, c over those of a head.
    x, p, w_v, w_o, a = vector("X"), vector("p"), vector("Wv"), vector("Wo"), index("a")

    def value(h: Any, j: Any, c: Any) -> Any:
        return over("b", lambda b: x[j, b] * w_v[h, b, c])

    def both(h: Any, b: Any) -> Any:
        return over("c", lambda c: w_v[h, b, c] * w_o[h, c, a])

    heads = over("h", lambda h: over("c", lambda c: over("j", lambda j: p[h, j] * value(h, j, c)) * w_o[h, c, a]))
    yield heads, over("j", lambda j: over("b", lambda b: x[j, b] * over("h", lambda h: p[h, j] * both(h, b))))


@step()
def any_length() -> Identities:
    """The formula computes the statement, for any number of texts, tokens and heads, of heads that share their keys,
    and for any widths, in a context of any other size.
    """
    case, (b, i, a) = AnyHeads(), index("b i a")
    y = case.computed(lambda xp: xp.array("W_o", case.heads * case.d_v, dimension("o")))
    yield y.then(entry(b, i, a)), case.multi_head(b, i, a)


@step(scope=Scope.ENUMERATED, detail="two heads on 2 tokens; two of d_v = 2 and three on a context of 2")
def _formula() -> Identities:
    """The formula, one product for all heads, is the statement with weights of each head's own."""
    for case in (Case(2, 2), Case(2, 2, n=1, d=2, d_v=2, context=2), Case(3, 3, n=1, context=2)):
        o = multi_head_attention(case.xp, case.x, *case.weights, **case.options)
        yield from entrywise(case.in_full(o), case.as_printed())


@step(
    scope=Scope.ENUMERATED,
    detail="two heads on 2 tokens; with shared keys and causal; one token on a context of 2; d = 1",
)
def _vjp() -> Identities:
    """The vector-Jacobian products are the formula's derivatives in the tokens, the context and all four weights; a
    token that is its own context gets the sum of both.
    """
    causal = {"is_causal": True}
    cases: tuple[tuple[Case, dict[str, bool]], ...] = (
        (Case(2, 2), {}),
        (Case(2, 1), causal),
        (Case(2, 1, n=1, context=2), {}),
    )
    for case, more in cases:
        xp, options = case.xp, case.options | more
        y = multi_head_attention(xp, case.x, *case.weights, **options)
        g = xp.symbols("g", *y.shape)
        gradients = multi_head_attention_vjp(xp, *[case.x, *case.weights, g], **options)
        for argument, gradient in zip((case.x, *case.weights, case.context), gradients, strict=True):
            if argument is not None:
                yield from entrywise(gradient, computed(xp.gradient, y, g, argument))


# One text of two tokens, two heads of width 1: their outputs are (1, 2) and (3, 4), token by token.
_OUTPUTS = np.array([[1, 2], [3, 4]])


@erratum(
    kind="imprecise",
    source=Source("003", "9, Attention Computation Steps", 878),
    printed=r"O_{\text{concat}}: \text{Reshape } O \in \mathbb{R}^{H \times n \times d_k} \text{ to } "
    r"\mathbb{R}^{n \times d_{\text{model}}}",
    corrected=r"\text{exchange the first two axes of } O \text{, then reshape}",
)
def _reshaped_output() -> Evidence:
    xp = Symbolic()
    rows = concat(xp, xp.asarray(_OUTPUTS[None, :, :, None])).value[0]
    point = "two heads of width 1 with outputs (1, 2) and (3, 4): the row of the first token"
    return Evidence(point, str(_OUTPUTS.reshape(2, 2)[0].tolist()), str(rows[0].tolist()), letters={"O": rows})


@erratum(
    kind="imprecise",
    source=Source("003", "9, Attention Computation Steps", 808),
    printed=r"\text{Reshape: split each matrix into multiple heads, } Q, K, V \in \mathbb{R}^{H \times n "
    r"\times d_k}",
    corrected=r"\text{reshape to } (n, H, d_k) \text{, as in document 002, line 776, and exchange the "
    r"first two axes}",
)
def _reshaped_input() -> Evidence:
    xp = Symbolic()
    heads = split(xp, xp.asarray(_OUTPUTS[None]), 2).value[0, :, :, 0]
    point = "Q = ((1, 2), (3, 4)), two heads of width 1: the queries of the first head"
    return Evidence(
        point,
        str(_OUTPUTS.reshape(2, 2, 1)[0, :, 0].tolist()),
        str(heads[0].tolist()),
        letters={"n": 2, "H": 2, "d_k": 1},
        values=(_OUTPUTS.reshape(2, 2, 1).shape,),
    )


@erratum(
    kind="contradictory",
    source=Source("003", "9, Attention Computation Steps", 855),
    printed=r"A \in \mathbb{R}^{H \times n \times n}, \quad A_{ijh}: \text{ position } j \text{ to "
    r"position } i \text{ in head } h",
    corrected=r"A_{hij}",
)
def _order_of_indices() -> Evidence:
    heads, n, d_k = 2, 3, 1
    scores = np.zeros((heads, n, d_k)) @ np.zeros((heads, d_k, n))
    return Evidence(
        "H = 2, n = 3: the shape that the indices of A run over",
        str((n, n, heads)),
        str(scores.shape),
        letters={"A": scores, "h": 2, "i": 1, "j": 3},
    )


@erratum(
    kind="contradictory",
    source=Source("001", "Appendix A", 728),
    printed=r"W^Q, W^K, W^V, W^{\text{proj}}: [d_{\text{model}} \times d_k] \text{ per head}",
    corrected=r"W^{\text{proj}} = W^O \text{ has } [d_v \times d_{\text{model}}] \text{ per head}",
)
def _part_of_the_output_projection() -> Evidence:
    d_model, heads = 6, 2
    part = np.split(np.zeros((d_model, d_model)), heads, axis=0)[0]
    return Evidence(
        "d_model = 6, H = 2: the part of one head",
        str((d_model, d_model // heads)),
        str(part.shape),
        letters={"W^proj": part, "W^O": part, "d_v": 3, "d_model": d_model},
        values=(part.size,),
    )


@erratum(
    kind="imprecise",
    source=Source("004", "1.1", 49),
    printed=r"\mathrm{MHA}(X) = \mathrm{Concat}(Z_1, \ldots, Z_H), W_O",
    corrected=r"\mathrm{MHA}(X) = \mathrm{Concat}(Z_1, \ldots, Z_H) W_O \text{: a product, not a pair}",
)
def _comma() -> Evidence:
    printed = (np.ones((2, 2)), np.ones((2, 2)))
    return Evidence(
        "how many matrices MHA(X) is",
        len(printed),
        1,
        letters={
            "MHA": lambda x: _OUTPUTS,
            "X": 0,
            "Z": [_OUTPUTS[:, :1], _OUTPUTS[:, 1:]],
            "ldots": _OUTPUTS[:, :0],
            "H": 2,
            "W_O": np.eye(2, dtype=int),
        },
    )


EQUATIONS = (
    Equation(
        slug="multi-head",
        number="27",
        title="Multi-head attention",
        statement=r"\text{MultiHead}(Q,K,V) = \text{Concat}(\text{head}_1, \ldots, \text{head}_h)W^O",
        sources=(
            Source("002", "6.1", 729),
            Source("003", "3, Multi-Head Attention", 106),
            Source("003", "9, Multi-Head Attention Mathematical Formulation", 915),
            Source("004", "1.1", 49),
        ),
        symbols=(*SYMBOLS, Symbol("W^O", r"\mathbb{R}^{h d_v \times d_{\text{model}}}", "the output projection")),
        assumptions=ASSUMPTIONS,
        sample=lambda rng: sample(rng, *((4, 2), (3, 3), (2, 1))[int(rng.integers(3))]),
        formula=multi_head_attention,
        vjp=multi_head_attention_vjp,
        steps=(_one_more_column, _sum_of_heads, any_length, _formula, _vjp),
        costs=COSTS,
        errata=(_reshaped_input, _reshaped_output, _order_of_indices, _part_of_the_output_projection, _comma),
    ),
)
