"""From similarity to attention, for one query (equations 20, 21 and 22)."""

from __future__ import annotations

from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import delta, dimension, index, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic, entries
from veriformer.spec.scores.softmax import any_length, softmax, softmax_vjp, weight


def similarity(xp: Any, q: Any, k: Any) -> Any:
    """s_ij = q_i · k_j for rows q [..., n_q, d] and k [..., n_k, d] (equation 20): the matrix Q Kᵀ."""
    return xp.matmul(q, xp.swapaxes(k, -1, -2))


def similarity_vjp(xp: Any, q: Any, k: Any, g: Any) -> tuple[Any, Any]:
    """dQ = g K and dK = gᵀ Q."""
    return xp.matmul(g, k), xp.matmul(xp.swapaxes(g, -1, -2), q)


def aggregate(xp: Any, weights: Any, v: Any) -> Any:
    """o_i = Σ_j α_ij v_j for weights [..., n_q, n_k] and values [..., n_k, d_v] (equation 22)."""
    return xp.matmul(weights, v)


def aggregate_vjp(xp: Any, weights: Any, v: Any, g: Any) -> tuple[Any, Any]:
    """dα = g vᵀ and dv = αᵀ g."""
    return xp.matmul(g, xp.swapaxes(v, -1, -2)), xp.matmul(xp.swapaxes(weights, -1, -2), g)


@step(scope=Scope.ENUMERATED, detail="the five printed weights")
def _printed() -> Identities:
    r"""Any positive numbers that sum to one are weights, those of the scores $\log \alpha_i$: so are the five printed
    ones, 0.05, 0.15, 0.10, 0.15 and 0.55.
    """
    printed = [sp.Rational(p, 100) for p in (5, 15, 10, 15, 55)]
    xp = TowerArithmetic()
    weights = computed(softmax, xp, xp.asarray([sp.log(p) for p in printed]))
    yield from entrywise(weights.each(xp.in_full), printed)
    yield sp.Add(*printed, evaluate=False), sp.S.One


def _dot(a: Any, b: Any) -> Any:
    c = sp.Dummy("c", integer=True)
    return symbolic_sum(a(c) * b(c), c, dimension("d"))


def _entry(i: Any) -> Any:
    """q · k_i for a query and keys of any width d."""
    return _dot(lambda c: vector("q")[c], lambda c: vector("k")[i, c])


def _attention_weight(i: Any) -> Any:
    j = sp.Dummy("j", integer=True)
    return sp.exp(_entry(i)) / symbolic_sum(sp.exp(_entry(j)), j, dimension("n"))


def _output(shift: Any = 0) -> Any:
    j = sp.Dummy("j", integer=True)
    return symbolic_sum(weight(j) * (vector("v")[j] + shift), j, dimension("n"))


@step()
def _distance() -> Identities:
    r"""$\mathbf{q} \cdot \mathbf{k} = \frac{1}{2} (\|\mathbf{q}\|^2 + \|\mathbf{k}\|^2 - \|\mathbf{q} -
    \mathbf{k}\|^2)$: among keys of one length the most similar is the nearest.
    """
    q, k = vector("q"), vector("k")
    squared = _dot(lambda c: q[c] - k[c], lambda c: q[c] - k[c])
    norms = _dot(lambda c: q[c], lambda c: q[c]) + _dot(lambda c: k[c], lambda c: k[c])
    yield _dot(lambda c: q[c], lambda c: k[c]), (norms - squared) / 2


@step()
def _gradient() -> Identities:
    """The gradient of a score is the key for the query, and the query for the key."""
    q, k, (r, j, s, e) = vector("q"), vector("k"), index("r j s e")
    score = _dot(lambda c: q[r, c], lambda c: k[j, c])
    yield sp.diff(score, q[s, e]), delta(r, s) * k[j, e]
    yield sp.diff(score, k[s, e]), delta(j, s) * q[r, e]


def _inner(a: Any, b: Any) -> Any:
    return sum(x * y for x, y in zip(entries(a), entries(b), strict=True))


@step("vjp", scope=Scope.ENUMERATED, detail="2 queries, 3 keys, d = 2")
def _scores_adjoint() -> Identities:
    """The vector-Jacobian products are the adjoints of the formula, which is linear in each argument."""
    xp = TowerArithmetic()
    q, k, g = xp.symbols("q", 2, 2), xp.symbols("k", 3, 2), xp.symbols("g", 2, 3)
    dq, dk = similarity_vjp(xp, q, k, g)
    yield _inner(g, similarity(xp, q, k)), _inner(dq, q)
    yield _inner(g, similarity(xp, q, k)), _inner(dk, k)


_any_scores_vjp = vjp_step(
    lambda: pullbacks(similarity, similarity_vjp, {"q": "B m d", "k": "B n d"}), "_any_scores_vjp"
)


@step()
def _sums_to_one() -> Identities:
    r"""$\sum_i \alpha_i = 1$, for any number of keys of any width."""
    i = index("i")
    yield symbolic_sum(_attention_weight(i), i, dimension("n")), 1


@step()
def _equal_scores() -> Identities:
    """Equal scores give equal weights $1 / n$."""
    c, j, n = sp.Symbol("c", real=True), index("j"), dimension("n")
    yield sp.exp(c) / symbolic_sum(sp.exp(c), j, n), 1 / n


@step()
def _moved_keys() -> Identities:
    r"""Adding one vector u to all keys adds $\mathbf{q} \cdot \mathbf{u}$ to all scores, and so changes no weight."""
    shift = _dot(lambda c: vector("q")[c], lambda c: vector("u")[c])
    yield weight(index("i"), shift=shift), weight(index("i"))


@step()
def _query_gradient() -> Identities:
    r"""$\partial \alpha_i / \partial \mathbf{q} = \alpha_i (\mathbf{k}_i - \sum_j \alpha_j \mathbf{k}_j)$: the query is
    pulled to a key by how far the key is from the mean key.
    """
    q, k, (i, j, e) = vector("q"), vector("k"), index("i j e")
    mean_key = symbolic_sum(_attention_weight(j) * k[j, e], j, dimension("n"))
    yield sp.diff(_attention_weight(i), q[e]), _attention_weight(i) * (k[i, e] - mean_key)


@step()
def _average() -> Identities:
    """The output is an average: adding u to every value adds u to it, since the weights sum to one."""
    yield _output(sp.Symbol("u", real=True)), _output() + sp.Symbol("u", real=True)


@step()
def _score_gradient() -> Identities:
    r"""$\partial \mathbf{o} / \partial s_k = \alpha_k (\mathbf{v}_k - \mathbf{o})$: raising a score moves the output
    towards that value.
    """
    k = index("k")
    yield sp.diff(_output(), vector("z")[k]), weight(k) * (vector("v")[k] - _output())


@step("vjp", scope=Scope.ENUMERATED, detail="2 queries, 3 keys, d_v = 2")
def _aggregate_adjoint() -> Identities:
    """The vector-Jacobian products are the adjoints of the formula, which is linear in each argument."""
    xp = TowerArithmetic()
    weights, v, g = xp.symbols("a", 2, 3), xp.symbols("v", 3, 2), xp.symbols("g", 2, 2)
    d_weights, dv = aggregate_vjp(xp, weights, v, g)
    yield _inner(g, aggregate(xp, weights, v)), _inner(d_weights, weights)
    yield _inner(g, aggregate(xp, weights, v)), _inner(dv, v)


_any_aggregate_vjp = vjp_step(
    lambda: pullbacks(aggregate, aggregate_vjp, {"w": "B m n", "v": "B n d"}), "_any_aggregate_vjp"
)


@step()
def _any_scores() -> Identities:
    """The formula computes the statement, for all numbers of queries and keys and every width."""
    xp, (r, i) = AnyLength(), index("r i")
    q, k = xp.array("q", dimension("m"), dimension("d")), xp.array("k", dimension("n"), dimension("d"))
    yield (
        computed(similarity, xp, q, k).then(entry(r, i)),
        _dot(lambda c: vector("q")[r, c], lambda c: vector("k")[i, c]),
    )


@step()
def _any_sum() -> Identities:
    """The formula computes the statement, for all sizes."""
    xp, (r, e) = AnyLength(), index("r e")
    weights, v = xp.array("a", dimension("m"), dimension("n")), xp.array("v", dimension("n"), dimension("e"))
    terms = lambda j: vector("a")[r, j] * vector("v")[j, e]  # noqa: E731
    yield computed(aggregate, xp, weights, v).then(entry(r, e)), sum_over("n", terms)


@erratum(
    kind="convention",
    source=Source("002", "5.1", 608),
    printed=r"s_i = \mathbf{q}^T \mathbf{k}_i",
    corrected=r"s_i = \mathbf{q} \mathbf{k}_i^T \text{, for vectors are rows (line 14), as in } QK^T",
)
def _rows_or_columns() -> Evidence:
    q, k = np.ones((1, 3)), np.ones((1, 3))
    rows, xp = np.array([[1, 2], [3, 4]]), Symbolic()
    return Evidence(
        "q and k rows of width 3: the shape of the product",
        (q.T @ k).shape,
        (q @ k.T).shape,
        letters={
            "i": range(1, 3),
            "q": rows[:1],
            "k": lambda i: rows[i - 1 : i],
            "s": similarity(xp, xp.asarray(rows[:1]), xp.asarray(rows)).value[:, :, None].swapaxes(0, 1),
            "Q": rows,
            "K": rows,
        },
        values=(rows @ rows.T,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n, d = rng.integers(1, 5, size=2)
    return {"q": rng.normal(size=(2, d)), "k": rng.normal(size=(n, d)), "v": rng.normal(size=(n, 3))}


def _sample_values(rng: np.random.Generator) -> dict[str, Any]:
    n = int(rng.integers(1, 5))
    return {"weights": rng.dirichlet(np.ones(n), size=2), "v": rng.normal(size=(n, 3))}


EQUATIONS = (
    Equation(
        slug="similarity",
        number="20",
        title="Similarity of a query to keys",
        statement=r"s_i = \mathbf{q}^T \mathbf{k}_i",
        sources=(Source("002", "5.1", 608),),
        symbols=(
            Symbol(r"\mathbf{q}", r"\mathbb{R}^d", "a query"),
            Symbol(r"\mathbf{k}_i", r"\mathbb{R}^d", "the key of position i"),
        ),
        assumptions=(Assumption("query and keys have one width", lambda a: a["q"].shape[-1] == a["k"].shape[-1]),),
        sample=lambda rng: {name: x for name, x in _sample(rng).items() if name != "v"},
        formula=similarity,
        vjp=similarity_vjp,
        steps=(_distance, _gradient, _any_scores, _scores_adjoint, _any_scores_vjp),
        costs={"FLOPs": costs.score_flops},
        errata=(_rows_or_columns,),
    ),
    Equation(
        slug="attention-weights",
        number="21",
        title="Attention weights",
        statement=r"\alpha_i = \frac{e^{s_i}}{\sum_{j=1}^n e^{s_j}}",
        sources=(Source("002", "5.1", 613),),
        symbols=(
            Symbol("s_i", r"\mathbb{R}", "similarity of the query to key i", "finite"),
            Symbol(r"\alpha_i", r"(0, 1]", "the weight of key i"),
        ),
        assumptions=(Assumption("every score is a real number", lambda a: bool(np.isfinite(a["z"]).all())),),
        sample=lambda rng: {"z": rng.normal(size=(2, int(rng.integers(1, 6))))},
        formula=softmax,
        vjp=softmax_vjp,
        steps=(_sums_to_one, any_length, _equal_scores, _moved_keys, _query_gradient, _printed),
        costs=costs.lazily("softmax"),
    ),
    Equation(
        slug="weighted-values",
        number="22",
        title="Weighted values",
        statement=r"\mathbf{o} = \sum_{i=1}^n \alpha_i \mathbf{v}_i",
        sources=(Source("002", "5.1", 630),),
        symbols=(
            Symbol(r"\alpha_i", r"(0, 1]", "attention weights", "sum to one"),
            Symbol(r"\mathbf{v}_i", r"\mathbb{R}^{d_v}", "the value of position i"),
        ),
        assumptions=(
            Assumption("there is a weight for every value", lambda a: a["weights"].shape[-1] == a["v"].shape[0]),
            Assumption("no weight is negative", lambda a: bool((a["weights"] >= 0).all())),
        ),
        sample=_sample_values,
        formula=aggregate,
        vjp=aggregate_vjp,
        steps=(_average, _any_sum, _score_gradient, _aggregate_adjoint, _any_aggregate_vjp),
        costs={"FLOPs": costs.value_flops},
    ),
)
