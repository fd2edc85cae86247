"""The cache of keys and values as a pure function from state to state (equations 42 and 43)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from veriformer.spec import costs
from veriformer.spec.arithmetic.any_size import largest
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.efficient.int8 import int8_round_trip
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import delta, dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed


class Cache(NamedTuple):
    """Keys and values [B, G, m, d] of the latest tokens, oldest first, and how many tokens there have been.

    length counts what was appended since the cache was new, so it is the position of the next token.
    """

    k: Any
    v: Any
    length: int
    max_length: int
    quantization: str | None = None
    window: int | None = None


def kv_cache(
    xp: Any,
    batch: int,
    num_kv_heads: int,
    max_length: int,
    head_dim: int,
    *,
    quantization: str | None = None,
    window: int | None = None,
) -> Cache:
    """An empty cache. quantization is None or "int8"; with a window, only what it can still show is kept."""
    if quantization not in (None, "int8"):
        raise ValueError(f'quantization: expected None or "int8", got {quantization!r}')
    if window is not None and window < 1:
        raise ValueError(f"window: expected at least 1, got {window}")
    nothing = xp.asarray(np.zeros((batch, num_kv_heads, 0, head_dim)))
    return Cache(nothing, nothing, 0, max_length, quantization, window)


def cache_update(xp: Any, cache: Cache, k_new: Any, v_new: Any) -> tuple[Cache, Any, Any]:
    """K ← concat(K, k_new) (42) and V ← concat(V, v_new) (43) for k_new, v_new [B, G, n, d]: (cache, K, V).

    What is returned is what is stored: with "int8" the rounded rows; with a window w the latest rows, at most
    w − 1 + n of them. More than max_length tokens are refused.
    """
    length = cache.length + k_new.shape[2]
    if length > cache.max_length:
        raise ValueError(f"k_new: expected at most {cache.max_length - cache.length} tokens, got {k_new.shape[2]}")
    k, v = (_appended(xp, cache, *rows) for rows in ((cache.k, k_new), (cache.v, v_new)))
    return cache._replace(k=k, v=v, length=length), k, v


def cache_reorder(xp: Any, cache: Cache, index: NDArray[np.int64]) -> Cache:
    """Batch element b continues the text of element index[b], as beams do."""
    return cache._replace(k=xp.asarray(cache.k)[index], v=xp.asarray(cache.v)[index])


def cache_reset(cache: Cache) -> Cache:
    """Return the cache without its tokens."""
    return cache._replace(k=cache.k[:, :, :0], v=cache.v[:, :, :0], length=0)


def _appended(xp: Any, cache: Cache, old: Any, new: Any) -> Any:
    if cache.window is not None:
        old = old[:, :, largest(0, old.shape[2] - (cache.window - 1)) :]
    stored = new if cache.quantization is None else int8_round_trip(xp, new)
    return xp.concat([old, stored], axis=2)


def of_letters(xp: AnyLength, rows: Any, m: Any = None, window: Any = None) -> tuple[Cache, Any, Any]:
    """A cache of any number m of tokens, with place for so many new rows, and new keys and values, all of letters."""
    m = dimension("m") if m is None else m
    shapes = [(dimension("B"), dimension("G"), n, dimension("d")) for n in (m, rows)]
    k, v, k_new, v_new = (xp.array(name, *shapes[name in "kv"]) for name in "KVkv")
    return Cache(k, v, m, m + rows, window=window), k_new, v_new


def _appended_rows(which: int) -> Identities:
    """Rows before and after the joint: the cache's own, which keep their places, and the new ones behind them."""
    xp, (b, g, e), (i, r, m) = AnyLength(), index("b g e"), map(dimension, "irm")
    # Any row i of the cache: it has m = i + u rows.
    own = i + sp.Symbol("u", integer=True, nonnegative=True)
    rows = computed(cache_update, xp, *of_letters(xp, r)).then(lambda found: found[which])
    old, new = "KV"[which - 1], "kv"[which - 1]
    yield rows.then(entry(b, g, i, e)).then(lambda x: x.subs(m, own)), vector(old)[b, g, i, e]
    yield rows.then(entry(b, g, m + i, e)), vector(new)[b, g, i, e]


@step()
def _any_keys() -> Identities:
    """The formula computes the statement, for any number of texts and heads, of cached keys and of new ones; the number
    of tokens grows by that of the new keys.
    """
    yield from _appended_rows(1)
    xp, m, r = AnyLength(), dimension("m"), dimension("r")
    yield computed(cache_update, xp, *of_letters(xp, r)).then(lambda found: found[0].length), m + r


@step()
def _any_values() -> Identities:
    """The formula computes the statement, for any number of texts and heads, of cached values and of new ones."""
    yield from _appended_rows(2)


@step()
def _any_window() -> Identities:
    """With a window w, of a cache that holds $w - 1 + u$ tokens the last $w - 1$ are kept before the new ones, and of
    one that holds fewer all, for all sizes.
    """
    (b, g, e), (i, r, w), xp = index("b g e"), map(dimension, "irw"), AnyLength()
    u = sp.Symbol("u", integer=True, nonnegative=True)
    full = computed(cache_update, xp, *of_letters(xp, r, i + w + u, i + w + 1)).then(lambda found: found[1])
    yield full.then(lambda keys: keys.shape[2]), i + w + r
    yield full.then(entry(b, g, i, e)), vector("K")[b, g, u + i, e]
    yield full.then(entry(b, g, i + w + i, e)), vector("k")[b, g, i, e]
    few = computed(cache_update, xp, *of_letters(xp, r, i + w, i + w + 1 + u)).then(lambda found: found[1])
    yield few.then(lambda keys: keys.shape[2]), i + w + r
    yield few.then(entry(b, g, i, e)), vector("K")[b, g, i, e]


@step()
def _rows() -> Identities:
    r"""A row of $K = X W^K$ depends on its own token only, $\partial K_{jc} / \partial X_{ib} = \delta_{ij} W_{bc}$: a
    new token changes no key that is there. So is it with values.
    """
    x, w, (i, j, b, c) = vector("X"), vector("W"), index("i j b c")
    a = sp.Dummy("a", integer=True)
    key = symbolic_sum(x[j, a] * w[a, c], a, dimension("d"))
    yield sp.diff(key, x[i, b]), delta(i, j) * w[b, c]


@step()
def _one_more_key() -> Identities:
    """A key that is appended adds one term to the sum over keys, for any number of them: the cache is all that
    attention needs of the past.
    """
    q, k, c, j, n, d = vector("q"), vector("k"), index("c"), index("j"), dimension("n"), dimension("d")

    def score(i: Any) -> Any:
        return symbolic_sum(q[c] * k[i, c], c, d) / sp.sqrt(d)

    yield symbolic_sum(sp.exp(score(j)), j, n + 1), symbolic_sum(sp.exp(score(j)), j, n) + sp.exp(score(n + 1))


@step()
def _one_more_value() -> Identities:
    r"""Among one key more, the output moves from $\mathbf{o}$ to $\mathbf{o} + p (\mathbf{v}_{n+1} - \mathbf{o})$:
    towards the new value, by its weight p.
    """
    s, v, j, n = vector("s"), vector("v"), index("j"), dimension("n")
    e, ev = (symbolic_sum(sp.exp(s[j]) * x, j, n) for x in (1, v[j]))
    weight = sp.exp(s[n + 1]) / symbolic_sum(sp.exp(s[j]), j, n + 1)
    after = symbolic_sum(sp.exp(s[j]) * v[j], j, n + 1) / symbolic_sum(sp.exp(s[j]), j, n + 1)
    yield after, ev / e + weight * (v[n + 1] - ev / e)


@erratum(
    kind="imprecise",
    source=Source("003", "10, Stage 5: KV Cache Operations", 1106),
    printed=r"\text{keys}[:, :, l : l + 1] = k_{\text{new}}, \quad l \gets l + 1",
    corrected=r"\text{the same, as long as } l < n_{\max} \text{: past the end the slice is empty, and the "
    r"key is lost without a word}",
)
def _silent_overflow() -> Evidence:
    # The code of lines 1101 to 1113 on keys of one feature, with room for one token.
    keys, length = np.zeros((1, 1, 1, 1)), 0
    for new in (1.0, 2.0):
        keys[:, :, length : length + 1] = np.full((1, 1, 1, 1), new)
        length += 1
    shown = keys[:, :, :length].ravel().tolist()
    return Evidence(
        "room for one token, keys 1 and then 2: the keys after two updates",
        "[1.0, 2.0]",
        str(shown),
        letters={"l": 0, "n_max": 1},
    )


def sample(rng: np.random.Generator) -> dict[str, Any]:
    """A cache of three tokens, with or without a window, and new keys and values."""
    batch, groups, d, new = (int(size) for size in rng.integers(1, 4, size=4))
    old, rows = rng.normal(size=(2, batch, groups, 3, d)), rng.normal(size=(2, batch, groups, new, d))
    cache = Cache(old[0], old[1], length=3, max_length=8, window=(None, 1, 2)[int(rng.integers(3))])
    return {"cache": cache, "k_new": rows[0], "v_new": rows[1]}


_SYMBOLS = (
    Symbol(r"K_{\text{cache}}, V_{\text{cache}}", r"\mathbb{R}^{m \times d}", "keys and values of the tokens so far"),
    Symbol(r"k_{\text{new}}, v_{\text{new}}", r"\mathbb{R}^{r \times d}", "those of the new tokens", "r is 1 or more"),
)
_ASSUMPTIONS = (
    Assumption(
        "there is room for the new tokens", lambda a: a["cache"].length + a["k_new"].shape[2] <= a["cache"].max_length
    ),
    Assumption("there are as many values as keys", lambda a: a["k_new"].shape[2] == a["v_new"].shape[2]),
)

EQUATIONS = (
    Equation(
        slug="key-cache",
        number="42",
        title="The cache of keys",
        statement=r"K_{\text{cache}} \gets \mathrm{concat}(K_{\text{cache}},\ k_{\text{new}})",
        sources=(
            Source("000", "10.4", 344),
            Source("001", "10.4", 424),
            Source("003", "10, Stage 5: KV Cache Operations", 1132),
        ),
        symbols=_SYMBOLS,
        assumptions=_ASSUMPTIONS,
        sample=sample,
        formula=cache_update,
        steps=(_any_keys, _any_window, _rows, _one_more_key),
        costs={"bytes of the cache": costs.kv_cache_bytes},
        errata=(_silent_overflow,),
    ),
    Equation(
        slug="value-cache",
        number="43",
        title="The cache of values",
        statement=r"V_{\text{cache}} \gets \mathrm{concat}(V_{\text{cache}},\ v_{\text{new}})",
        sources=(
            Source("000", "10.4", 351),
            Source("001", "10.4", 432),
            Source("003", "10, Stage 5: KV Cache Operations", 1133),
        ),
        symbols=_SYMBOLS,
        assumptions=_ASSUMPTIONS,
        sample=sample,
        formula=cache_update,
        steps=(_any_values, _one_more_value),
        costs={"bytes of the cache": costs.kv_cache_bytes},
    ),
)
