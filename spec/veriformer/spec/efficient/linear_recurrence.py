"""Why linear attention needs no scores, and what it is not (equation 45)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Float, Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.efficient.linear_attention import (
    FEATURE_MAPS,
    State,
    elu_plus_one,
    elu_plus_one_slope,
    linear_attention,
    linear_attention_vjp,
    linear_step,
)
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, at_least_zero, entry
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, sum_over, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic

# In the proofs for all sizes: f_c are the features of a query, g_jc those of key j; c over d, j over n.


def _over(letter: str, term: Callable[[Any], Any], size: Any = None) -> Any:
    return sum_over({"c": "d", "j": "n"}[letter] if size is None else size, term, letter)


def _similarity(j: Any) -> Any:
    return _over("c", lambda c: vector("f")[c] * vector("g")[j, c])


@step()
def _associative() -> Identities:
    r"""$(\phi(Q) \phi(K)^T) V = \phi(Q) (\phi(K)^T V)$, and the same with ones for the values: the sum over keys can be
    done first, once for all queries.
    """
    f, g, v = vector("f"), vector("g"), vector("v")
    sums = _over("c", lambda c: f[c] * _over("j", lambda j: g[j, c] * v[j]))
    yield _over("j", lambda j: _similarity(j) * v[j]), sums
    yield _over("j", _similarity), _over("c", lambda c: f[c] * _over("j", lambda j: g[j, c]))


@step()
def _weights() -> Identities:
    r"""The weights $\phi(q) \cdot \phi(k_j) / \sum_i \phi(q) \cdot \phi(k_i)$ sum to one, and they are positive where
    features are. A single feature of the query is a factor of all, and cancels.
    """
    j = index("j")
    yield _over("j", lambda i: _similarity(i) / _over("j", _similarity)), 1
    yield (
        _over("j", lambda i: vector("f")[j] * vector("g")[i, j]),
        vector("f")[j] * _over("j", lambda i: vector("g")[i, j]),
    )


@step()
def _recurrence() -> Identities:
    r"""A further key adds $\phi(k)^T v$ to S and $\phi(k)$ to z, for any number of keys: the causal form is a
    recurrence whose state does not grow.
    """
    f, g, v, n = vector("f"), vector("g"), vector("v"), dimension("n")
    s_next = _over("c", lambda c: f[c] * (_over("j", lambda j: g[j, c] * v[j]) + g[n + 1, c] * v[n + 1]))
    yield _over("j", lambda j: _similarity(j) * v[j], n + 1), s_next
    z_next = _over("c", lambda c: f[c] * (_over("j", lambda j: g[j, c]) + g[n + 1, c]))
    yield _over("j", _similarity, n + 1), z_next


@step()
def _features() -> Identities:
    """elu + 1 is $x + 1$ above zero and $e^x$ below, positive on both sides, with the slopes 1 and $e^x$, which meet at
    zero.
    """
    p = positive("p")
    xp = Symbolic()
    for x, value, slope in ((p, p + 1, sp.S.One), (-p, sp.exp(-p), sp.exp(-p))):
        yield elu_plus_one(xp, xp.asarray(x)).value[()] * p, value * p
        yield sp.diff(value, p) * sp.diff(x, p) * p, elu_plus_one_slope(xp, xp.asarray(x)).value[()] * p
        yield slope * p**2 + p, p * (slope * p + 1)


_SIGNS = ({"positive": True}, {"negative": True})


def _cases() -> Any:
    """Queries and keys of either sign, on both sides of the corner of φ."""
    for n_q, n_k, causal in ((1, 2, False), (2, 2, True), (2, 1, True)):
        for of_q, of_k in ((0, 1), (1, 0)):
            xp = TowerArithmetic()
            q = xp.symbols("q", 1, 1, n_q, 1, **_SIGNS[of_q])
            k = xp.symbols("k", 1, 1, n_k, 1, **_SIGNS[of_k])
            yield xp, q, k, xp.symbols("v", 1, 1, n_k, 1), causal


def _any_phi(x: Any) -> Any:
    """elu(x) + 1, of a letter of either sign."""
    return sp.exp(sp.Min(x, 0)) + sp.Max(x, 0)


@step()
def _any_length() -> Identities:
    r"""The formula computes the statement, for all sizes and both forms of $\phi$; causally the sums run over the keys
    $j \le i + m$ that query i sees, where there are m keys more than queries.
    """
    (b, h, i, e), (q, k, v) = index("b h i e"), map(vector, "qkv")
    texts, heads, n_q, m, d, d_v = map(dimension, ("B", "H", "n_q", "m", "d", "d_v"))
    n_k = n_q + m

    def sums(value: Callable[[Any], Any], seen: Callable[[Any], Any]) -> Any:
        def of_keys(c: Any) -> Any:
            return sum_over(n_k, lambda j: seen(j) * _any_phi(k[b, h, j, c]) * value(j))

        return sum_over(d, lambda c: _any_phi(q[b, h, i, c]) * of_keys(c))

    for name in FEATURE_MAPS:
        for causal, seen in ((False, lambda j: 1), (True, lambda j: at_least_zero(i + m - j))):
            xp = AnyLength()
            shapes = (n_q, d), (n_k, d), (n_k, d_v)
            arrays = (xp.array(letter, texts, heads, *shape) for letter, shape in zip("qkv", shapes, strict=True))
            o = computed(linear_attention, xp, *arrays, feature_map=name, is_causal=causal)
            yield o.then(entry(b, h, i, e)), sums(lambda j: v[b, h, j, e], seen) / sums(lambda _: 1, seen)


@step(scope=Scope.ENUMERATED, detail="n ≤ 3, d = 1")
def _steps() -> Identities:
    """Token by token through the state it is the causal formula."""
    for n in (1, 2, 3):
        xp = TowerArithmetic()
        q, k, v = (
            xp.symbols("q", 1, 1, n, 1, positive=True),
            *(xp.symbols(name, 1, 1, n, 1, positive=True) for name in "kv"),
        )
        at_once = linear_attention(xp, q, k, v, is_causal=True).value
        state = State(*(xp.asarray(np.zeros((1, 1, 1, 1))) for _ in "sz"))
        for i in range(n):
            o, state = linear_step(xp, state, *(x[:, :, i : i + 1] for x in (q, k, v)))
            yield (
                xp.in_full(o.value[0, 0, 0, 0]) * q.value[0, 0, 0, 0],
                xp.in_full(at_once[0, 0, i, 0]) * q.value[0, 0, 0, 0],
            )


@step(scope=Scope.ENUMERATED, detail="the cases of the formula")
def _vjp() -> Identities:
    """The vector-Jacobian products are the formula's derivatives in queries, keys and values."""
    for xp, q, k, v, causal in _cases():
        o = linear_attention(xp, q, k, v, is_causal=causal)
        g = xp.symbols("g", *o.shape)
        for argument, gradient in zip((q, k, v), linear_attention_vjp(xp, q, k, v, g, is_causal=causal), strict=True):
            full = [[xp.in_full(e) for e in side] for side in (gradient.value.ravel(), xp.gradient(o, g, argument))]
            yield from entrywise(*full)


def linear_flops() -> Any:
    """φ(K)ᵀ V, φ(Q) of it, and φ(Q) of the summed features: 2 B H (n_k d_k d_v + n_q d_k d_v + n_q d_k)."""
    b, h, n_q, n_k, d_k, d_v = (costs.symbol(name) for name in ("B", "H", "n_q", "n_k", "d_k", "d_v"))
    return 2 * b * h * (n_k * d_k * d_v + n_q * d_k * d_v + n_q * d_k)


def state_bytes() -> Any:
    """S and z: (d_k d_v + d_k) elements per head, whatever the length of the text."""
    b, h, d_k, d_v, w = (costs.symbol(name) for name in ("B", "H", "d_k", "d_v", "w"))
    return w * b * h * (d_k * d_v + d_k)


def _square(cost: Any) -> Any:
    n, d = costs.symbol("n"), costs.symbol("d")
    sizes = {"B": 1, "H": 1, "G": 1, "n_q": n, "n_k": n, "d_k": d, "d_v": d}
    return cost.subs({costs.symbol(name): size for name, size in sizes.items()}, simultaneous=True)


@step()
def _operations() -> Identities:
    r"""Linear attention takes $4 n d^2 + 2 n d$ FLOPs against $4 n^2 d$: fewer as soon as $n > d + \frac{1}{2}$, that
    is for $d < n$.
    """
    n, d = costs.symbol("n"), costs.symbol("d")
    yield _square(linear_flops()), 4 * n * d**2 + 2 * n * d
    yield _square(costs.attention_flops() - linear_flops()), 4 * n * d * (n - d - sp.Rational(1, 2))


@erratum(
    kind="imprecise",
    source=Source("000", "10.5", 366),
    printed=r"\text{Approximate } \text{softmax}(\mathbf{q}^T\mathbf{k}) \text{ with } \phi(\mathbf{q})^T "
    r"\phi(\mathbf{k})",
    corrected=r"\text{it takes the place of } e^{\mathbf{q}^T \mathbf{k}} \text{ before the sum, and how "
    r"near it is depends on } \phi \text{: elu + 1 with } d = 1 \text{ does not look at the query at all}",
)
def _not_softmax() -> Evidence:
    xp = Float()
    ways = []
    for query in (1.0, -1.0):
        q, k, v = (xp.asarray(np.reshape(x, (1, 1, -1, 1))) for x in ([query], [0.0, 1.0], [0.0, 1.0]))
        ways.append(float(linear_attention(xp, q, k, v).value.item()))
    softmax = [round(float(np.exp(q) / (1 + np.exp(q))), 3) for q in (1.0, -1.0)]
    return Evidence(
        "d = 1, keys 0 and 1, φ = elu + 1: the weight of key 1 for the queries 1 and −1, by softmax and by features",
        tuple(softmax),
        tuple(round(weight, 3) for weight in ways),
        letters={"q": np.array([[3, -1]]), "k": np.array([[2, 5]]), "phi": 0, "d": 1},
        values=(np.exp([[6, 15], [-2, -5]]),),
    )


@erratum(
    kind="imprecise",
    source=Source("000", "10.5", 370),
    printed=r"\frac{\phi(Q)(\phi(K)^T V)}{\phi(Q)(\phi(K)^T \mathbf{1})} \text{ for feature map } \phi",
    corrected=r"\text{for a feature map with } \phi(\mathbf{q}) \cdot \phi(\mathbf{k}) > 0",
)
def _positive_features() -> Evidence:
    query, keys = sp.Integer(1), (sp.Integer(1), sp.Integer(-1))
    return Evidence(
        "φ(x) = x, q = 1, keys 1 and −1: the denominator",
        "not 0",
        query * sum(keys),
        letters={"phi": lambda x: x, "q": query, "k": range(-1, 2)},
        values=(lambda letters: letters["k"] * query > 0,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n_q, n_k, d, d_v = (int(size) for size in rng.integers(1, 5, size=4))
    shapes = {"q": (2, 3, n_q, d), "k": (2, 3, n_k, d), "v": (2, 3, n_k, d_v)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()} | {"is_causal": bool(rng.integers(2))}


EQUATIONS = (
    Equation(
        slug="linear-attention",
        number="45",
        title="Linear attention",
        statement=r"\text{LinAttn}(Q,K,V) = \frac{\phi(Q)(\phi(K)^T V)}{\phi(Q)(\phi(K)^T \mathbf{1})}",
        sources=(Source("000", "10.5", 370), Source("001", "10.5", 467)),
        symbols=(
            Symbol(r"\phi", r"\mathbb{R} \to \mathbb{R}_{> 0}", "the feature map, entry by entry: elu + 1"),
            Symbol("f_c, g_{jc}", r"\mathbb{R}_{> 0}", "features of a query and of key j"),
            Symbol(
                "S, z",
                r"\mathbb{R}^{d \times d_v}, \mathbb{R}_{> 0}^d",
                "the state: features times values, and features, summed",
            ),
            Symbol(r"\mathbf{1}", r"\{1\}^{n}", "a column of ones"),
        ),
        assumptions=(
            Assumption("queries and keys have one width", lambda a: a["q"].shape[-1] == a["k"].shape[-1]),
            Assumption("a key head for each head", lambda a: a["q"].shape[1] == a["k"].shape[1]),
            Assumption("there are as many values as keys", lambda a: a["k"].shape[2] == a["v"].shape[2] > 0),
        ),
        sample=_sample,
        formula=linear_attention,
        vjp=linear_attention_vjp,
        steps=(_associative, _weights, _recurrence, _features, _any_length, _steps, _vjp, _operations),
        costs={
            "FLOPs": linear_flops,
            "bytes of the state": state_bytes,
            "FLOPs of softmax attention": costs.attention_flops,
        },
        errata=(_not_softmax, _positive_features),
    ),
)
