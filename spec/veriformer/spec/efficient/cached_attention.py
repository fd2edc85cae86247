"""Attention of new queries over the cache, and why it gives the last rows of the full computation (equation 44)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.attention import attention, attention_vjp
from veriformer.spec.attention.causal_mask import causal_mask
from veriformer.spec.attention.printed_attention import score
from veriformer.spec.efficient.kv_cache import Cache, cache_update, kv_cache, of_letters, sample
from veriformer.spec.equation import Assumption, Equation, Identities, Scope, Source, Symbol, step
from veriformer.spec.proofs.any_length import AnyLength, at_least_zero, entry, place
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic


def cached_attention(
    xp: Any,
    q_new: Any,
    k_new: Any,
    v_new: Any,
    cache: Cache,
    *,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Any, Cache]:
    """Causal attention of q_new [B, H, n, d] over the cache with k_new and v_new [B, G, n, d] appended: (out, cache).

    The last query sees the last key, and with the cache's window w only its w latest keys.
    """
    cache, k, v = cache_update(xp, cache, k_new, v_new)
    out = attention(xp, q_new, k, v, is_causal=True, window=cache.window, scale=scale, softcap=softcap)
    return out, cache


def cached_attention_vjp(
    xp: Any,
    q_new: Any,
    k_new: Any,
    v_new: Any,
    cache: Cache,
    g: Any,
    *,
    scale: float | None = None,
    softcap: float | None = None,
) -> tuple[Any, Any, Any]:
    """(dq_new, dk_new, dv_new): those of attention, at the new rows; for a cache that does not round."""
    _, k, v = cache_update(xp, cache, k_new, v_new)
    options: dict[str, Any] = {"window": cache.window, "scale": scale, "softcap": softcap}
    dq, dk, dv, _ = attention_vjp(xp, q_new, k, v, g, is_causal=True, **options)
    old = k.shape[2] - k_new.shape[2]
    return dq, dk[:, :, old:], dv[:, :, old:]


def decoded(xp: Any, q: Any, k: Any, v: Any, sizes: list[int], *, window: int | None = None) -> Any:
    """Causal attention over q [B, H, n, d] and k, v [B, G, n, d], chunk by chunk of these sizes, through a cache."""
    batch, groups, n, d = k.shape
    cache, rows, start = kv_cache(xp, batch, groups, n, d, window=window), [], 0
    for size in sizes:
        q_new, k_new, v_new = (x[:, :, start : start + size] for x in (q, k, v))
        out, cache = cached_attention(xp, q_new, k_new, v_new, cache)
        rows.append(out)
        start += size
    return xp.concat(rows, axis=2)


def splits(n: int) -> Iterator[list[int]]:
    """Every way to cut n tokens into chunks."""
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            yield [b - a for a, b in pairwise([0, *cuts, n])]


@step()
def _hidden_token() -> Identities:
    """A further key moves a query's output by $b_{n+1}$ times a bounded term: a key that it does not see, $b_{n+1} =
    0$, might as well not be there. By induction so for any number of later tokens: row i of the full causal computation
    is attention over the first i keys, which is what the cache holds when row i is computed. As the order of keys means
    nothing (23), keys that a window has left behind may go too.
    """
    # Visible keys have b = 1, hidden ones b = 0; the keys are n, and then one more.
    s, v, b, j, n = vector("s"), vector("v"), vector("b"), index("j"), dimension("n")

    def weighed(count: Any, value: Any) -> Any:
        return symbolic_sum(b[j] * sp.exp(s[j]) * value, j, count)

    before = weighed(n, v[j]) / weighed(n, 1)
    change = b[n + 1] * sp.exp(s[n + 1]) * (v[n + 1] - before) / (weighed(n, 1) + b[n + 1] * sp.exp(s[n + 1]))
    yield weighed(n + 1, v[j]) / weighed(n + 1, 1) - before, change


@step()
def _any_length() -> Identities:
    """The formula computes the statement, for any number of cached and of new tokens, of texts, and of heads that share
    their keys: new query i attends to every row of the cache and to the new rows up to its own. Head (g, s) is the s-th
    of those that read key head g.
    """
    xp, (b, g, s, e), i = AnyLength(), index("b g s e"), dimension("i")
    r, m, n, d = map(dimension, ("r", "m", "n", "d"))
    cache, k_new, v_new = of_letters(xp, n)
    q_new, head = xp.array("q", dimension("B"), dimension("G") * r, n, d), place(g, s, r)

    def sums(value: Any) -> Any:
        def term(keys: str, values: str, j: Any) -> Any:
            key, query = (lambda c: vector(keys)[b, g, j, c]), (lambda c: vector("q")[b, head, i, c])
            return sp.exp(score(query, key, d)) * value(vector(values)[b, g, j, e])

        new = sum_over(n, lambda j: at_least_zero(i - j) * term("k", "v", j))
        return sum_over(m, lambda j: term("K", "V", j)) + new

    out = computed(cached_attention, xp, q_new, k_new, v_new, cache).then(itemgetter(0))
    yield out.then(entry(b, head, i, e)), sums(lambda v: v) / sums(lambda _: 1)


@step()
def _same_pairs() -> Identities:
    r"""Computing m tokens, and then r over the cache, visits $\frac{m (m + 1)}{2} + r m + \frac{r (r + 1)}{2}$ pairs,
    as many as computing $m + r$ at once: each pair of a query and a key it sees is visited once, however the text is
    cut.
    """
    # m tokens at once, and then r tokens over the cache of m, against m + r tokens at once.
    i, m, r = index("i"), costs.symbol("m"), costs.symbol("r")
    seen = costs.causal_pairs().subs({costs.symbol("n_q"): r, costs.symbol("n_k"): m + r}, simultaneous=True)
    yield symbolic_sum(i, i, m) + seen, symbolic_sum(i, i, m + r)
    yield symbolic_sum(i, i, m), symbolic_sum(sp.Integer(1), i, m) * (m + 1) / 2


@step(scope=Scope.ENUMERATED, detail="every split of n ≤ 4 tokens, two heads that share their keys for n = 2")
def _every_split() -> Identities:
    """Decoding through the cache, in chunks of any sizes, gives the rows of the full causal computation."""
    for n, heads in ((2, 2), (3, 1), (4, 1)):
        xp = TowerArithmetic()
        q, k, v = xp.symbols("q", 1, heads, n, 1), xp.symbols("k", 1, 1, n, 1), xp.symbols("v", 1, 1, n, 1)
        printed = _printed(q.value[0], k.value[0, 0], v.value[0, 0], n)
        for sizes in splits(n):
            yield from entrywise([xp.in_full(e) for e in decoded(xp, q, k, v, sizes).value.ravel()], printed)


@step(scope=Scope.ENUMERATED, detail="every split for (n, w) of (2, 1), (3, 1), (3, 2), (4, 2)")
def _windows() -> Identities:
    """With a window w the cache need keep no more than its last $w - 1$ rows: the rows are still those of the full
    computation.
    """
    for n, window in ((2, 1), (3, 1), (3, 2), (4, 2)):
        xp = TowerArithmetic()
        q, k, v = (xp.symbols(name, 1, 1, n, 1) for name in "qkv")
        printed = _printed(q.value[0], k.value[0, 0], v.value[0, 0], window)
        for sizes in splits(n):
            computed = decoded(xp, q, k, v, sizes, window=window)
            yield from entrywise([xp.in_full(e) for e in computed.value.ravel()], printed)


def _printed(q: Any, k: Any, v: Any, window: int) -> list[Any]:
    """The full computation: every query of every head over itself and the tokens before it, at most `window`."""
    see = causal_mask(len(k), len(k), window=window)
    out = []
    for head in q:
        for query, row in zip(head[:, 0], see, strict=True):
            e = [sp.exp(query * key) for key in k[row, 0]]
            out.append(sum(x * y for x, y in zip(e, v[row, 0], strict=True)) / sum(e))
    return out


@step(scope=Scope.ENUMERATED, detail="2 new tokens over 2, without a window and with w = 2")
def _vjp() -> Identities:
    """The vector-Jacobian products are the formula's derivatives in the new queries, keys and values."""
    for window in (None, 2):
        xp = TowerArithmetic()
        old = [xp.symbols(f"{name}_old", 1, 1, 2, 1) for name in "kv"]
        cache = cache_update(xp, kv_cache(xp, 1, 1, 4, 1, window=window), *old)[0]
        q, k, v = (xp.symbols(name, 1, 1, 2, 1) for name in "qkv")
        out, _ = cached_attention(xp, q, k, v, cache)
        g = xp.symbols("g", *out.shape)
        for argument, gradient in zip((q, k, v), cached_attention_vjp(xp, q, k, v, cache, g), strict=True):
            yield from entrywise(gradient, computed(xp.gradient, out, g, argument))


def decode_flops() -> Any:
    """Return the FLOPs for a new query per head over n_k keys: 2 B H n_k (d_k + d_v)."""
    return costs.attention_flops().subs(costs.symbol("n_q"), 1)


def window_rows() -> Any:
    """Rows of a window w that a cache keeps between updates: w − 1, however long the text."""
    return costs.symbol("W") - 1


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    arguments = sample(rng)
    batch, groups, new, d = arguments["k_new"].shape
    return {"q_new": rng.normal(size=(batch, 2 * groups, new, d))} | arguments


EQUATIONS = (
    Equation(
        slug="cached-attention",
        number="44",
        title="Attention over the cache",
        statement=r"\text{output} = \text{softmax}\left(\frac{q_{\text{new}} K_{\text{full}}^T}{\sqrt{d_k}}\right) "
        r"V_{\text{full}}, \quad K_{\text{full}} = [K_{\text{cache}}; k_{\text{new}}], \quad V_{\text{full}} = "
        r"[V_{\text{cache}}; v_{\text{new}}]",
        sources=(
            Source("003", "10, Stage 5: KV Cache Operations", 1141),
            Source("000", "10.4", 358),
            Source("001", "10.4", 439),
        ),
        symbols=(
            Symbol(r"q_{\text{new}}", r"\mathbb{R}^{r \times d_k}", "queries of the new tokens", "r is 1 or more"),
            Symbol(
                r"K_{\text{full}}, V_{\text{full}}",
                r"\mathbb{R}^{(m + r) \times d}",
                "what is cached, and the new rows",
            ),
            Symbol(r"\mathbf{b}", r"\{0, 1\}^n", "1 for the keys that a query sees"),
            Symbol("w", r"\mathbb{N}", "the window: how many of its latest keys a query sees"),
        ),
        assumptions=(
            Assumption(
                "there is room for the new tokens",
                lambda a: a["cache"].length + a["k_new"].shape[2] <= a["cache"].max_length,
            ),
            Assumption("as many queries as keys and values", lambda a: a["q_new"].shape[2] == a["k_new"].shape[2]),
            Assumption("the key heads divide the heads", lambda a: a["q_new"].shape[1] % a["k_new"].shape[1] == 0),
        ),
        sample=_sample,
        formula=cached_attention,
        vjp=cached_attention_vjp,
        steps=(_any_length, _hidden_token, _same_pairs, _every_split, _windows, _vjp),
        costs={"FLOPs": decode_flops, "rows kept with a window": window_rows},
    ),
)
