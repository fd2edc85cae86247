"""Backpropagation through attention (document 002, section 5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import place
from veriformer.spec.proofs.indexed import dimension, index, ranged, vector
from veriformer.spec.proofs.pullbacks import pullbacks
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic

# In the proofs for all sizes: r runs over n queries, j over m keys, a over d features, c over e value features.


over = ranged(r="n", j="m", a="d", c="e")


def _p(r: Any, j: Any) -> Any:
    s = vector("S")
    return sp.exp(s[r, j]) / over("j", lambda i: sp.exp(s[r, i]))


def _g_s(r: Any, j: Any) -> Any:
    """Row r of G_S as printed: (diag(P_r) − P_r P_rᵀ) G_{P,r}."""
    g = vector("G_P")
    return _p(r, j) * (g[r, j] - over("j", lambda i: _p(r, i) * g[r, i]))


def _score(r: Any, j: Any) -> Any:
    return over("a", lambda a: vector("Q")[r, a] * vector("K")[j, a]) / sp.sqrt(dimension("d"))


@step()
def _values() -> Identities:
    """$O = PV$ is linear in V: $G_V = P^T G_O$."""
    g, p, v, (j, c) = vector("G_O"), vector("P"), vector("V"), index("j c")
    loss = over("r", lambda r: over("c", lambda b: g[r, b] * over("j", lambda i: p[r, i] * v[i, b])))
    yield sp.diff(loss, v[j, c]), over("r", lambda r: p[r, j] * g[r, c])


@step()
def _weights() -> Identities:
    """$O = PV$ is linear in P: $G_P = G_O V^T$."""
    g, p, v, (r, j) = vector("G_O"), vector("P"), vector("V"), index("r j")
    loss = over("r", lambda i: over("c", lambda b: g[i, b] * over("j", lambda k: p[i, k] * v[k, b])))
    yield sp.diff(loss, p[r, j]), over("c", lambda c: g[r, c] * v[j, c])


@step()
def _scores() -> Identities:
    r"""Each row goes through the Jacobian (25): $G_S = P \odot (G_P - \mathrm{rowsum}(P \odot G_P))$."""
    g, (r, j) = vector("G_P"), index("r j")
    loss = over("r", lambda i: over("j", lambda k: g[i, k] * _p(i, k)))
    yield sp.diff(loss, vector("S")[r, j]), _g_s(r, j)


@step()
def _queries_and_keys() -> Identities:
    r"""$S = QK^T / \sqrt{d_k}$: $G_Q = G_S K / \sqrt{d_k}$ and $G_K = G_S^T Q / \sqrt{d_k}$."""
    g, q, k, (r, j, a) = vector("G_S"), vector("Q"), vector("K"), index("r j a")
    loss = over("r", lambda i: over("j", lambda b: g[i, b] * _score(i, b)))
    root = sp.sqrt(dimension("d"))
    yield sp.diff(loss, q[r, a]), over("j", lambda i: g[r, i] * k[i, a]) / root
    yield sp.diff(loss, k[j, a]), over("r", lambda i: g[i, j] * q[i, a]) / root


@step()
def _rows_of_scores() -> Identities:
    """Every row of the scores' gradient sums to zero."""
    yield over("j", lambda j: _g_s(index("r"), j)), 0


@step()
def _keys_do_not_move() -> Identities:
    r"""Hence $\sum_j G_{K,j} = 0$: a common shift of all keys is invisible."""
    # Σ_j G_K: what a common shift of all keys would change.
    g, q, a = vector("G_S"), vector("Q"), index("a")
    by_row = over("r", lambda r: q[r, a] * over("j", lambda j: g[r, j]))
    yield over("j", lambda j: over("r", lambda r: g[r, j] * q[r, a])), by_row
    yield over("r", lambda r: q[r, a] * over("j", lambda j: _g_s(r, j))), 0


@step()
def _balance() -> Identities:
    r"""$\langle Q, G_Q \rangle = \langle K, G_K \rangle$: scaling Q up is scaling K up."""
    g, q, k = vector("G_S"), vector("Q"), vector("K")
    root = sp.sqrt(dimension("d"))
    queries = over("r", lambda r: over("a", lambda a: q[r, a] * over("j", lambda j: g[r, j] * k[j, a]) / root))
    keys = over("j", lambda j: over("a", lambda a: k[j, a] * over("r", lambda r: g[r, j] * q[r, a]) / root))
    yield queries, keys


@step()
def _delta() -> Identities:
    r"""$\mathrm{rowsum}(P \odot G_P) = \mathrm{rowsum}(G_O \odot O)$: the backward pass in blocks needs one number per
    row, which can be had from the output.
    """
    g, p, v, r = vector("G_O"), vector("P"), vector("V"), index("r")
    saved = over("c", lambda c: g[r, c] * over("j", lambda j: p[r, j] * v[j, c]))
    yield over("j", lambda j: p[r, j] * over("c", lambda c: g[r, c] * v[j, c])), saved


_CASES: tuple[tuple[tuple[int, int, int, int, int, int], dict[str, Any]], ...] = (
    ((1, 1, 2, 3, 2, 2), {}),
    ((4, 2, 2, 2, 1, 1), {"is_causal": True, "bias": (4, 1, 2)}),
    ((1, 1, 3, 2, 1, 1), {"is_causal": True, "bias": (1, 3, 1)}),
    ((1, 1, 3, 3, 1, 1), {"is_causal": True, "window": 2, "softcap": "c"}),
    ((2, 1, 1, 2, 1, 2), {"scale": "r", "mask": [[[True, False]], [[False, False]]]}),
    ((1, 1, 2, 3, 2, 1), {"softcap": "c", "scale": "r", "bias": (3,), "keep": [[True, False, True]], "dropout_p": "p"}),
)


def cases() -> Iterator[tuple[TowerArithmetic, Any, Any, Any, Any, dict[str, Any]]]:
    """(arithmetic, q, k, v, cotangent, options) over combinations of every option, with symbolic numbers."""
    for (heads, groups, n_q, n_k, d_k, d_v), given in _CASES:
        xp = TowerArithmetic()
        q, k = xp.symbols("q", 1, heads, n_q, d_k), xp.symbols("k", 1, groups, n_k, d_k)
        v, g = xp.symbols("v", 1, groups, n_k, d_v), xp.symbols("g", 1, heads, n_q, d_v)
        options = {name: sp.Symbol(x, positive=True) if isinstance(x, str) else x for name, x in given.items()}
        options |= {name: np.array(given[name]) for name in ("mask", "keep") if name in given}
        options |= {"bias": xp.symbols("b", *given["bias"])} if "bias" in given else {}
        yield xp, q, k, v, g, options


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes, for all sizes and any number of heads that share
    keys, without options.
    """
    B, G, r, n, m, d_k, d_v = map(dimension, ["B", "G", "r", "n", "m", "d_k", "d_v"])
    arguments = {"q": (B, G * r, n, d_k), "k": (B, G, m, d_k), "v": (B, G, m, d_v)}
    h, s = index("h s")
    yield from pullbacks(attention, attention_vjp, arguments, {G * r: place(h, s, r)})


@erratum(
    kind="convention",
    source=Source("002", "5.3", 708),
    printed=r"\mathrm{diag}(P_r) - P_r P_r^T",
    corrected=r"\mathrm{diag}(P_r) - P_r^T P_r \text{, for rows are row vectors (line 14)}",
)
def _rows_of_weights() -> Evidence:
    p = np.array([[sp.Rational(1, 4), sp.Rational(3, 4)]])
    printed = np.diag(p[0]) - (p @ p.T)
    actual = np.diag(p[0]) - p.T @ p
    point = "P_r = (1/4, 3/4) as a row (line 14): row sums of the Jacobian"
    return Evidence(
        point,
        tuple(printed.sum(1)),
        tuple(actual.sum(1)),
        letters={"P_r": p, "diag": lambda row: np.diag(row[0])},
        values=(actual,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n_q, n_k, d_k, d_v = rng.integers(1, 5, size=4)
    shapes = {"q": (2, 4, n_q, d_k), "k": (2, 2, n_k, d_k), "v": (2, 2, n_k, d_v), "g": (2, 4, n_q, d_v)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


EQUATIONS = (
    Equation(
        slug="attention-gradients",
        number=None,
        title="Backpropagation through attention",
        statement=r"G_V = P^T G_O, \quad G_P = G_O V^T, \quad G_{S,r} = \left(\mathrm{diag}(P_r) - P_r P_r^T\right) "
        r"G_{P,r}, "
        r"\quad G_Q = G_S K/\sqrt{d_k}, \quad G_K = G_S^T Q/\sqrt{d_k}",
        sources=(Source("002", "5.3", 706),),
        symbols=(
            Symbol("S", r"\mathbb{R}^{n_q \times n_k}", "scores over the root of the head dimension"),
            Symbol("P", r"(0, 1]^{n_q \times n_k}", "weights, softmax of S by rows"),
            Symbol("G_X", r"\text{the space of } X", "the gradient of the loss with respect to X"),
        ),
        assumptions=(
            Assumption(
                "the cotangent has the shape of the output",
                lambda a: a["g"].shape == (*a["q"].shape[:-1], a["v"].shape[-1]),
            ),
            Assumption("queries and keys have one width", lambda a: a["q"].shape[-1] == a["k"].shape[-1]),
        ),
        sample=_sample,
        formula=attention_vjp,
        steps=(
            _values,
            _weights,
            _scores,
            _queries_and_keys,
            _rows_of_scores,
            _keys_do_not_move,
            _balance,
            _delta,
            _any_vjp,
        ),
        costs={"FLOPs": costs.attention_backward_flops, "FLOPs, tiled": costs.tiled_backward_flops},
        errata=(_rows_of_weights,),
    ),
)
