"""Token embeddings: taking a row of a table, and adding to it (equation 39)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec.arithmetic.any_size import counting
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.costs import EMBEDDING
from veriformer.spec.equation import Assumption, Equation, Identities, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step


def token_embedding(xp: Any, ids: NDArray[np.int64], weight: Any) -> Any:
    """E[ids], shape [..., d], for ids [...] and a table weight [V, d] (equation 39)."""
    return weight[ids]


def token_embedding_vjp(xp: Any, ids: NDArray[np.int64], weight: Any, g: Any) -> Any:
    """dE[v] = Σ of g over the tokens that are v, shape [V, d]: rows that were not read get 0."""
    size, d = weight.shape
    reads = counting(size)[:, None] == ids.ravel()
    return xp.matmul(reads.astype(np.float64), xp.reshape(g, (ids.size, d)))


@step()
def _one_hot() -> Identities:
    r"""Taking a row is multiplying by a one-hot vector: $E[i]_a = \sum_v \delta_{vi} E_{va}$. So a lookup is a linear
    layer, without its multiplications.
    """
    (v, i, a), table = index("v i a"), vector("E")
    yield symbolic_sum(delta(v, i) * table[v, a], v, dimension("V")), table[i, a]


@step()
def _any_length() -> Identities:
    """The formula computes the statement for any number of tokens and any table: token 0 reads its first row."""
    xp, (t, a), (n, size, d) = AnyLength(), index("t a"), map(dimension, "TVd")
    tokens = whole("i", nonnegative=True)
    rows = computed(token_embedding, xp, whole_numbers(tokens, n), xp.array("E", size, d))
    yield rows.then(entry(t, a)), sum_over(size, lambda v: delta(v, tokens[t] + 1) * vector("E")[v, a])


@step()
def _scatter_add() -> Identities:
    r"""With $o_{tv} = 1$ where token t is v, $\partial \mathcal{L} / \partial E_{wc} = \sum_t o_{tw} g_{tc}$: every
    token adds its cotangent to the row that it read, and a row that none read gets 0.
    """
    # o_tv is 1 where token t is v: the lookup of all tokens is the product o E.
    (t, v, a, w, c), g, o, table = index("t v a w c"), vector("g"), vector("o"), vector("E")
    row = symbolic_sum(o[t, v] * table[v, a], v, dimension("V"))
    loss = symbolic_sum(symbolic_sum(g[t, a] * row, a, dimension("d")), t, dimension("T"))
    yield sp.diff(loss, table[w, c]), symbolic_sum(o[t, w] * g[t, c], t, dimension("T"))


@step()
def _repeated() -> Identities:
    """A token that stands T times gets the sum of its T cotangents, and no other row gets any: writing instead of
    adding keeps only one of them.
    """
    # All T tokens are the same one, i.
    (t, i, w, c), g, table = index("t i w c"), vector("g"), vector("E")
    loss = symbolic_sum(g[t] * table[i, c], t, dimension("T"))
    yield sp.diff(loss, table[w, c]), delta(i, w) * symbolic_sum(g[t], t, dimension("T"))


_any_vjp = vjp_step(
    lambda: pullbacks(token_embedding, token_embedding_vjp, {"i": whole_numbers(whole("i"), "T"), "E": "V d"})
)


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    size, d = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    return {"ids": rng.integers(0, size, size=(2, 3)), "weight": rng.normal(size=(size, d))}


EQUATIONS = (
    Equation(
        slug="token-embedding",
        number="39",
        title="Token embeddings",
        statement=r"\mathbf{e}_i = E[i] \in \mathbb{R}^{d_{\text{model}}}",
        sources=(Source("002", "8.2", 965), Source("003", "6", 381), Source("003", "6", 415)),
        symbols=(
            Symbol("E", r"\mathbb{R}^{V \times d_{\text{model}}}", "the embedding matrix, one row per token"),
            Symbol("i", r"\{0, \dots, V-1\}", "a token"),
        ),
        assumptions=(
            Assumption("every token has a row", lambda a: bool((a["ids"] < a["weight"].shape[0]).all())),
            Assumption("no token is negative", lambda a: bool((a["ids"] >= 0).all())),
        ),
        sample=_sample,
        formula=token_embedding,
        vjp=token_embedding_vjp,
        steps=(_one_hot, _any_length, _scatter_add, _repeated, _any_vjp),
        costs=EMBEDDING,
    ),
)
