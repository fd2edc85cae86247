"""Scaled dot-product attention as a whole (equation 23)."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.spec.attention.printed_attention import attended
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, at_least_zero, entry, mask, place, seen
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, real, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed, entries_with_origin
from veriformer.spec.proofs.published import rounds_to
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def _scores(j: Any, query: Any = None) -> Any:
    c, d = sp.Dummy("c", integer=True), dimension("d")
    q = query or (lambda c: vector("q")[c])
    return symbolic_sum(q(c) * vector("k")[j, c], c, d) / sp.sqrt(d)


def _output(query: Any = None, extra: Any = None) -> Any:
    """Return a row of the output, over any number of keys of any width; `extra` is a further key's (score, value)."""
    j, n = sp.Dummy("j", integer=True), dimension("n")
    e = sp.exp(_scores(j, query))
    top, bottom = symbolic_sum(e * vector("v")[j], j, n), symbolic_sum(e, j, n)
    return top / bottom if extra is None else (top + sp.exp(extra[0]) * extra[1]) / (bottom + sp.exp(extra[0]))


def _printed(q: Any, k: Any, v: Any) -> Any:
    """The statement, read as it stands: softmax(Q Kᵀ / √d_k) V, row by row."""
    s = q @ k.T / sp.sqrt(q.shape[-1])
    e = np.frompyfunc(sp.exp, 1, 1)(s)
    return (e / e.sum(axis=-1, keepdims=True)) @ v


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for all sizes: any number of texts, queries and keys, of any widths, and r
    query heads for each of G key heads. Head (g, s) is the s-th of those that read key head g; any number may stand in
    place of the largest score, as the letter does.
    """
    xp, (b, g, s, i, e) = AnyLength(), index("b g s i e")
    texts, groups, r, n_q, n_k, d_k, d_v = map(dimension, ("B", "G", "r", "n_q", "n_k", "d_k", "d_v"))
    q, k, v = map(vector, ("Q", "K", "V"))
    head = place(g, s, r)
    query = xp.array("Q", texts, groups * r, n_q, d_k)
    arrays = query, xp.array("K", texts, groups, n_k, d_k), xp.array("V", texts, groups, n_k, d_v)

    def printed(sees: Any = None) -> Any:
        rows = (lambda c: q[b, head, i, c]), (lambda j, c: k[b, g, j, c]), (lambda j: v[b, g, j, e])
        return attended(*rows, n_k, d_k, sees)

    yield computed(attention, xp, *arrays).then(entry(b, head, i, e)), printed()


@step()
def _any_mask() -> Identities:
    r"""With a mask, or causally, the sums run over the keys that the query sees, for all sizes and any mask; with m
    keys more than queries, query i sees key j where $j \le i + m$.
    """
    xp, (i, e), (n_q, m, d_k, d_v) = AnyLength(), index("i e"), map(dimension, ("n_q", "m", "d_k", "d_v"))
    n_k = n_q + m
    q, k, v = xp.array("Q", 1, 1, n_q, d_k), xp.array("K", 1, 1, n_k, d_k), xp.array("V", 1, 1, n_k, d_v)
    options: tuple[dict[str, Any], ...] = {"mask": mask("b", n_q, n_k)}, {"is_causal": True}
    for option, sees in zip(options, (lambda j: seen("b")(i, j), lambda j: at_least_zero(i + m - j)), strict=True):
        rows = (lambda c: vector("Q")[1, 1, i, c]), (lambda j, c: vector("K")[1, 1, j, c])
        printed = attended(*rows, lambda j: vector("V")[1, 1, j, e], n_k, d_k, sees)
        yield computed(attention, xp, q, k, v, **option).then(entry(1, 1, i, e)), printed


@step()
def _any_options() -> Identities:
    r"""With all options at once a weight is $\frac{b_{ij}}{1 - p} \mathrm{softmax}(c \tanh(r \mathbf{q}_i \cdot
    \mathbf{k}_j / c) + B_{ij})$: scale r, soft cap c, bias B, and the mask b of what dropout spares, for all sizes.
    """
    xp, (i, e), (n_q, n_k, d_k, d_v) = AnyLength(), index("i e"), map(dimension, ("n_q", "n_k", "d_k", "d_v"))
    q, k, v, bias, p = vector("Q"), vector("K"), vector("V"), vector("B"), real("p")
    scale, cap = positive("r c")

    def term(j: Any) -> Any:
        raw = sum_over(d_k, lambda c: q[1, 1, i, c] * k[1, 1, j, c])
        return sp.exp(cap * sp.tanh(scale * raw / cap) + bias[i, j])

    kept = sum_over(n_k, lambda j: seen("b")(i, j) * term(j) * v[1, 1, j, e]) / (1 - p)
    arrays = [xp.array(name, 1, 1, n, d) for name, n, d in (("Q", n_q, d_k), ("K", n_k, d_k), ("V", n_k, d_v))]
    options = {"bias": xp.array("B", n_q, n_k), "scale": scale, "softcap": cap}
    found = computed(attention, xp, *arrays, **options, keep=mask("b", n_q, n_k), dropout_p=p)
    yield found.then(entry(1, 1, i, e)), kept / sum_over(n_k, term)


@step(scope=Scope.ENUMERATED, detail="H = 4, G = 2")
def _grouped_heads() -> Identities:
    r"""With G key heads for H query heads, head h is attention with key head $\lfloor h G / H \rfloor$."""
    xp = TowerArithmetic()
    q, k, v = xp.symbols("q", 1, 4, 1, 1), xp.symbols("k", 1, 2, 2, 1), xp.symbols("v", 1, 2, 2, 1)
    o = attention(xp, q, k, v).value[0]
    for h in range(4):
        printed = _printed(q.value[0, h], k.value[0, h // 2], v.value[0, h // 2])
        yield from entrywise([xp.in_full(e) for e in o[h].ravel()], printed.ravel())


@step(scope=Scope.ENUMERATED, detail="3 keys, a rotation and a reflection (which generate all orders)")
def _order_of_keys() -> Identities:
    """Keys and values have no order: moving them together changes nothing, so position must come from elsewhere."""
    for order in ([1, 2, 0], [2, 1, 0]):
        xp = TowerArithmetic()
        q, k, v = xp.symbols("q", 1, 1, 2, 1), xp.symbols("k", 1, 1, 3, 1), xp.symbols("v", 1, 1, 3, 1)
        moved = attention(xp, q, xp.asarray(k.value[:, :, order]), xp.asarray(v.value[:, :, order]))
        yield from entrywise(
            [xp.in_full(e) for e in moved.value.ravel()], _printed(q.value[0, 0], k.value[0, 0], v.value[0, 0])
        )


@step()
def _repeated_keys() -> Identities:
    """Showing every key and value twice changes nothing."""
    j, n = sp.Dummy("j", integer=True), dimension("n")
    e = sp.exp(_scores(j))
    twice = symbolic_sum(2 * e * vector("v")[j], j, n) / symbolic_sum(2 * e, j, n)
    yield twice, _output()


@step()
def _average_key() -> Identities:
    """A further key whose value is the output already leaves the output as it is, however similar it is."""
    # A key whose value is the output already does not move it, however similar it is.
    yield _output(extra=(real("s"), _output())), _output()


@step(scope=Scope.ENUMERATED, detail="one query, two keys")
def _options() -> Identities:
    """Scale, soft cap, bias, softmax and dropout act in this order, and dropped weights are not shared out."""
    cap, scale, bias = real("c"), real("r"), real("b_1 b_2")
    xp = TowerArithmetic()
    q, k, v = xp.symbols("q", 1, 1, 1, 1), xp.symbols("k", 1, 1, 2, 1), xp.symbols("v", 1, 1, 2, 1)
    keep, p = np.array([True, False]), real("p")
    o = attention(xp, q, k, v, bias=xp.asarray(list(bias)), scale=scale, softcap=cap, keep=keep, dropout_p=p)
    scores = [
        cap * sp.tanh(q.value[0, 0, 0, 0] * e * scale / cap) + b for e, b in zip(k.value.ravel(), bias, strict=True)
    ]
    kept = sp.exp(scores[0]) / (sp.exp(scores[0]) + sp.exp(scores[1])) / (1 - p)
    yield xp.in_full(o.value.ravel()[0]), kept * v.value.ravel()[0]


_Q, _K, _V = ((1, 0, 1), (0, 1, 1)), ((1, 1, 0), (1, 0, 1)), ((2, 0, 1), (1, 1, 0))


def _worked() -> tuple[Any, Any]:
    q, k, v = (np.array([[sp.Integer(e) for e in row] for row in m], dtype=object) for m in (_Q, _K, _V))
    return _printed(q, k, np.array([[sp.S.One, 0], [0, sp.S.One]], dtype=object)), _printed(q, k, v)


def _thousandths(x: Any) -> str:
    """Rounded to three places, half up, from forty exact digits."""
    return f"{int(sp.floor(sp.N(x, 40) * 1000 + sp.Rational(1, 2))) / 1000:.3f}"


@step("worked", scope=Scope.NUMERIC, detail="exact numbers, rounded as printed")
def _worked_steps() -> Identities:
    """The worked example is right up to its exponentials, and in the second row, whose scores are equal: weights 0.500,
    output (1.500, 0.500, 0.500).
    """
    scores = [e for row in np.array(_Q) @ np.array(_K).T for e in row]
    yield from entrywise(computed(np.matmul, np.array(_Q), np.array(_K).T), (1, 2, 1, 1))
    scaled = [sp.Integer(int(e)) / sp.sqrt(3) for e in scores]
    for s, printed, exponential in zip(scaled, ("0.577", "1.155"), ("1.781", "3.173"), strict=False):
        yield rounds_to(s, printed)
        yield rounds_to(sp.exp(s), exponential)
    yield rounds_to(sp.exp(scaled[0]) + sp.exp(scaled[1]), "4.954")
    # The second sum, 3.562, is printed from the rounded terms; unrounded it is 3.5626.
    yield sp.Mul(2, sp.Rational("1.781"), evaluate=False), sp.Rational("3.562")
    # The second rows of the weights and of the output.
    for which, texts in enumerate((("0.500", "0.500"), ("1.500", "0.500", "0.500"))):
        row = computed(_worked).then(itemgetter(which)).then(itemgetter(1))
        yield from (rounds_to(entry, text) for entry, text in zip(entries_with_origin(row), texts, strict=True))


@erratum(
    kind="wrong",
    source=Source("002", "9.1", 1029),
    printed=r"A = \begin{bmatrix} 0.359 & 0.641 \\ 0.500 & 0.500 \end{bmatrix}",
    corrected=r"A = \begin{bmatrix} 0.360 & 0.640 \\ 0.500 & 0.500 \end{bmatrix}",
)
def _worked_weights() -> Evidence:
    return Evidence(
        "A of the worked example, first row",
        ("0.359", "0.641"),
        tuple(map(_thousandths, _worked()[0][0])),
        letters={"A": np.vectorize(_thousandths)(_worked()[0])},
    )


@erratum(
    kind="wrong",
    source=Source("002", "9.1", 1036),
    printed=r"O = \begin{bmatrix} 1.359 & 0.641 & 0.359 \\ 1.500 & 0.500 & 0.500 \end{bmatrix}",
    corrected=r"O = \begin{bmatrix} 1.360 & 0.640 & 0.360 \\ 1.500 & 0.500 & 0.500 \end{bmatrix}",
)
def _worked_output() -> Evidence:
    claimed = ("1.359", "0.641", "0.359")
    return Evidence(
        "O of the worked example, first row",
        claimed,
        tuple(map(_thousandths, _worked()[1][0])),
        letters={"O": np.vectorize(_thousandths)(_worked()[1])},
    )


@erratum(
    kind="wrong",
    source=Source("002", "9.2", 1050),
    printed=r"\frac{\partial \mathcal{L}}{\partial V} = "
    r"\begin{bmatrix} 0.359 & 0.500 & 0.359 \\ 0.641 & 0.500 & 0.641 \end{bmatrix}",
    corrected=r"\frac{\partial \mathcal{L}}{\partial V} = "
    r"\begin{bmatrix} 0.360 & 0.500 & 0.360 \\ 0.640 & 0.500 & 0.640 \end{bmatrix}",
)
def _worked_gradient() -> Evidence:
    g = np.array([[1, 0, 1], [0, 1, 0]])
    actual = _worked()[0].T @ g
    return Evidence(
        "the gradient of V of the worked example, first column",
        ("0.359", "0.641"),
        tuple(map(_thousandths, actual[:, 0])),
        letters={"dL/dV": np.vectorize(_thousandths)(actual)},
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n_q, n_k, d_k, d_v = rng.integers(1, 5, size=4)
    shapes = {"q": (2, 4, n_q, d_k), "k": (2, 2, n_k, d_k), "v": (2, 2, n_k, d_v)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


EQUATIONS = (
    Equation(
        slug="attention",
        number="23",
        title="Scaled dot-product attention",
        statement=r"\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{QK^T}{\sqrt{d_k}}\right)V",
        sources=(
            Source("002", "5.1", 637),
            Source("003", "3, Self-Attention: The Core Mechanism", 88),
            Source("004", "1", 28),
        ),
        symbols=(
            Symbol("Q", r"\mathbb{R}^{n_q \times d_k}", "queries, one row each"),
            Symbol("K", r"\mathbb{R}^{n_k \times d_k}", "keys"),
            Symbol("V", r"\mathbb{R}^{n_k \times d_v}", "values"),
        ),
        assumptions=(
            Assumption("queries and keys have one width", lambda a: a["q"].shape[-1] == a["k"].shape[-1]),
            Assumption(
                "there are as many values as keys, at least one", lambda a: a["k"].shape[2] == a["v"].shape[2] > 0
            ),
            Assumption("the key heads divide the query heads", lambda a: a["q"].shape[1] % a["k"].shape[1] == 0),
        ),
        sample=_sample,
        formula=attention,
        vjp=attention_vjp,
        steps=(
            _any_length,
            _any_mask,
            _any_options,
            _order_of_keys,
            _repeated_keys,
            _average_key,
            _grouped_heads,
            _options,
            _worked_steps,
        ),
        costs=costs.lazily("attention"),
        errata=(_worked_weights, _worked_output, _worked_gradient),
    ),
)
