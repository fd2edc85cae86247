"""The head of a language model, and sharing its weight with the embeddings (equation 40)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import EMBEDDING, HEAD, evaluate, symbol
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import symbols


def lm_head(xp: Any, h: Any, weight: Any) -> Any:
    """Logits h Eᵀ, shape [..., V], for h [..., d] and weight [V, d]: the softmax of (40) is not taken here."""
    return xp.matmul(h, xp.swapaxes(weight, 0, 1))


def lm_head_vjp(xp: Any, h: Any, weight: Any, g: Any) -> tuple[Any, Any]:
    """dh = g E and dE = gᵀ h, summed over all positions."""
    size, d = weight.shape
    rows = math.prod(h.shape[:-1])
    flat_g, flat_h = xp.reshape(g, (rows, size)), xp.reshape(h, (rows, d))
    return xp.matmul(g, weight), xp.matmul(xp.swapaxes(flat_g, 0, 1), flat_h)


def _logit(v: Any) -> Any:
    """h · e_v for any width."""
    c = sp.Dummy("c", integer=True)
    return symbolic_sum(vector("h")[c] * vector("E")[v, c], c, dimension("d"))


def _probability(v: Any) -> Any:
    w = sp.Dummy("w", integer=True)
    return sp.exp(_logit(v)) / symbolic_sum(sp.exp(_logit(w)), w, dimension("V"))


@step()
def _ratio() -> Identities:
    r"""A logit is the inner product of the hidden state with a token's embedding, and two tokens differ by $P(v) / P(w)
    = e^{\mathbf{h} \cdot (\mathbf{e}_v - \mathbf{e}_w)}$.
    """
    v, w, c = index("v w c")
    h, table = vector("h"), vector("E")
    difference = symbolic_sum(h[c] * (table[v, c] - table[w, c]), c, dimension("d"))
    yield _probability(v) / _probability(w), sp.exp(difference)


@step()
def _hidden_gradient() -> Identities:
    r"""$\partial \mathcal{L} / \partial \mathbf{h} = \sum_v p_v \mathbf{e}_v - \mathbf{e}_t$: the hidden state is
    pushed from the embedding that is expected to the one that came.
    """
    v, t, a = index("v t a")
    table = vector("E")
    loss = sp.log(symbolic_sum(sp.exp(_logit(v)), v, dimension("V"))) - _logit(t)
    mean = symbolic_sum(_probability(v) * table[v, a], v, dimension("V"))
    yield sp.diff(loss, vector("h")[a]), mean - table[t, a]


@step()
def _tied_gradient() -> Identities:
    r"""A tied weight gets the sum of two gradients. For $\mathbf{h} = E[i]$ they are $\delta_{iw} \sum_v g_v E_{va}$
    from the lookup, for the token that was read, and $g_w E_{ia}$ from the head, for every token. Any V and d.
    """
    # A model that does nothing between: h = E[i], logits E[i] Eᵀ, with a cotangent g_v each.
    i, v, w, c, a = index("i v w c a")
    g, table, size = vector("g"), vector("E"), dimension("V")
    loss = symbolic_sum(g[v] * symbolic_sum(table[i, c] * table[v, c], c, dimension("d")), v, size)
    as_table, as_head = symbolic_sum(g[v] * table[v, a], v, size), g[w] * table[i, a]
    yield sp.diff(loss, table[w, a]), delta(i, w) * as_table + as_head


@step()
def _saved() -> Identities:
    """Of $2 V d$ weights tying saves half, $V d$: 38,597,376 for V = 50,257 and d = 768."""
    parameters = HEAD["parameters"]()
    both = EMBEDDING["parameters"]() + parameters
    # The costs are those of the two operations, counted apart.
    yield both - parameters, symbol("V") * symbol("d")
    yield computed(evaluate, both - parameters, V=50257, d=768), sp.Integer(38597376)


def _determinant(table: Any) -> Any:
    return sp.expand(sp.Matrix(table).det(method="berkowitz"))


@step(scope=Scope.ENUMERATED, detail="d ≤ 2")
def _rank() -> Identities:
    """Logits of any $d + 1$ positions for any $d + 1$ tokens have determinant 0: whatever the network, its table of
    logits has rank d at most.
    """
    for d in (1, 2):
        h, table = symbols("h", d + 1, d), symbols("e", d + 1, d)
        yield computed(_determinant, h @ table.T), sp.S.Zero


_any_vjp = vjp_step(lambda: pullbacks(lm_head, lm_head_vjp, {"h": "B n d", "E": "V d"}))


@step()
def _any_length() -> Identities:
    """The logits that are computed are the statement's, for every vocabulary and width; of softmax see (1)."""
    xp, (t, w), (n, size, d) = AnyLength(), index("t w"), map(dimension, ("n", "V", "d"))
    logits = computed(lm_head, xp, xp.array("h", n, d), xp.array("E", size, d))
    score = sum_over("d", lambda c: vector("h")[t, c] * vector("E")[w, c], "c")
    yield logits.then(entry(t, w)), score


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    size, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return {"h": rng.normal(size=(2, 3, d)), "weight": rng.normal(size=(size, d))}


EQUATIONS = (
    Equation(
        slug="weight-tying",
        number="40",
        title="Weight tying",
        statement=r"P(w_t | \text{context}) = \text{softmax}(\mathbf{h}_t E^T)",
        sources=(
            Source("002", "8.2", 972),
            Source("000", "11.3", 430),
            Source("001", "11.3", 569),
            Source("003", "12, Mathematical Formulation", 1444),
        ),
        symbols=(
            Symbol(r"\mathbf{h}_t", r"\mathbb{R}^{1 \times d_{\text{model}}}", "the last hidden state at position t"),
            Symbol("E", r"\mathbb{R}^{V \times d_{\text{model}}}", "the embedding matrix, also used as the head"),
        ),
        assumptions=(
            Assumption("hidden states are as wide as embeddings", lambda a: a["h"].shape[-1] == a["weight"].shape[-1]),
        ),
        sample=_sample,
        formula=lm_head,
        vjp=lm_head_vjp,
        steps=(_any_length, _ratio, _hidden_gradient, _tied_gradient, _saved, _rank, _any_vjp),
        costs=HEAD,
    ),
)
