"""Requirements of the cache of keys and values, and of attention over it (equations 42 to 44)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates

kv_cache = templates.of("kv_cache", "42", "43")
cached_attention = templates.of("cached_attention", "44")

_EXACTLY = "The same, exactly: what is stored is not computed with."
_SCALES = "https://github.com/sgl-project/sglang/pull/20705"
_WINDOW = "https://github.com/huggingface/transformers/issues/39408"


def _of_cache(name: str, statement: str, bug_class: str, *precedents: str, weight: Weight) -> Requirement:
    return kv_cache.law(name, statement, _EXACTLY, bug_class, *precedents, weight=weight)


def _of_attention(name: str, statement: str, bug_class: str, *precedents: str, weight: Weight) -> Requirement:
    floating_point_statement = "The same within the bound of the formula, or the sum of the bounds of what is compared."
    return cached_attention.law(name, statement, floating_point_statement, bug_class, *precedents, weight=weight)


KV_CACHE = (
    *kv_cache.standard(
        "contract equation purity layout refusals numpy_numbers",
        equation=r"$K \gets \mathrm{concat}(K, k_{\mathrm{new}})$ and $V \gets \mathrm{concat}(V, v_{\mathrm{new}})$: "
        "after every update keys and values are those of all tokens so far, oldest first.",
        refusals="Sizes that are negative or no integers, unknown quantizations and dtypes, empty windows; updates of "
        "another shape, dtype or of too many tokens, and orders that are not one int64 element of the batch each are "
        "refused.",
    ),
    _of_cache(
        "history",
        "After any sequence of updates, reorders, resets and refused updates a cache shows, and counts, what a plain "
        "list of rows would.",
        "stale state",
        weight=Weight.WRONG,
    ),
    _of_cache(
        "overflow",
        "More tokens than `max_length` are refused, and a refused update changes nothing; exactly as many are taken.",
        "lost tokens",
        weight=Weight.WRONG,
    ),
    _of_cache(
        "window",
        r"With a window $w$ an update of $n$ rows shows the latest $\min(m, w - 1) + n$ rows, where $m$ came before, "
        "for any chunks around $w$; `length` counts all of them.",
        "window off by one",
        _WINDOW,
        "https://github.com/trymirai/lalamo/pull/200",
        weight=Weight.WRONG,
    ),
    _of_cache(
        "reorder",
        "After a reorder, batch element $b$ shows the rows of element `index[b]` in keys and values alike, and goes on "
        "from them, also where elements repeat.",
        "stale rows after a reorder",
        weight=Weight.LEAK,
    ),
    _of_cache(
        "long",
        "What holds for a few rows holds for hundreds: however they fill pages of 16 to 256 rows, at once, in two or "
        "token by token, all of them are shown.",
        "page edge",
        weight=Weight.WRONG,
    ),
    kv_cache.wrong(
        "int8",
        r"With `int8` each entry returned is within half a step, $\max |x| / 254$ of its row, of what was stored, for "
        "rows of very different sizes, also after a reset or a refused update; rows of zeros stay zeros. An update "
        "returns what is stored: its rows are those that later updates show.",
        r"$|\hat x - x| \le \max |x| / 254$ plus the rounding of quotient, scale and product; shown again, a row is "
        "the same bit for bit.",
        "wrong scale",
        _SCALES,
        "https://github.com/kekzl/imp/pull/91",
        kind=Kind.NUMERICS,
    ),
)

CACHED_ATTENTION = (
    *cached_attention.standard(
        "contract equation gradient purity layout refusals batch sensitivity long numpy_numbers",
        equation=r"$\mathrm{softmax}(q_{\mathrm{new}} K^\top / \sqrt{d_k}) V$ over the cache with the new rows "
        "appended, causal, with scale and soft-cap as in attention and the window of the cache.",
        gradient="New queries, keys and values get the vector-Jacobian product of attention at their rows.",
        refusals="Wrong ranks, dtypes that differ, heads that do not divide, lengths and widths that do not match, bad "
        "scales and caps, and more tokens than there is room for are refused.",
        batch="Batch elements and groups of heads are independent: each can be computed alone.",
    ),
    _of_attention(
        "chunks",
        "However a text is cut into calls, with a window or without, outputs are those of one call: prefill is "
        "decoding.",
        "decoding that differs from prefill",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        _WINDOW,
        weight=Weight.WRONG,
    ),
    _of_attention(
        "reorder",
        "After a reorder every batch element goes on as if the text of the element that it follows had been its own.",
        "stale rows after a reorder",
        weight=Weight.LEAK,
    ),
    _of_attention(
        "forgotten",
        "What was there before a reset, and what a window has left behind, may hold anything, NaN too: it does not "
        "matter.",
        "stale rows after a reset",
        weight=Weight.LEAK,
    ),
    _of_attention(
        "overflow",
        "A call with more tokens than there is room for is refused, and the next one gives what it would have given.",
        "half an update",
        weight=Weight.WRONG,
    ),
    _of_attention(
        "causality",
        "Among the new tokens, a query sees none after it; it sees every one before it, in the cache or not.",
        "what lies ahead leaks",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        weight=Weight.LEAK,
    ),
    cached_attention.wrong(
        "int8",
        "Over a cache of bytes the output is attention over keys and values within half a step of those given, with "
        "scale, soft-cap and window as over any cache.",
        "Within the bound of the formula with every key and value in doubt by half a step of its row.",
        "wrong scale",
        _SCALES,
        kind=Kind.NUMERICS,
    ),
)

REQUIREMENTS = (*KV_CACHE, *CACHED_ATTENTION)
