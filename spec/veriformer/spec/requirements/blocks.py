"""Requirements of multi-head and linear attention, of caches, and of the transformer block."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import COMPARED, FINITE_HALF, Relation, fragile, numerics, of, wrong

multi_head_attention = of("multi_head_attention", "26", "27")

_TILED = "https://github.com/datawhalechina/tiny-universe/issues/21"
_UNPERMUTED = "https://github.com/lucidrains/vit-pytorch/issues/65"

MULTI_HEAD_ATTENTION = multi_head_attention.standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=r"$\mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_H) W^O$ with "
    r"$\mathrm{head}_h = \mathrm{Attention}(X W^Q_h, C W^K_g, C W^V_g)$, $g = \lfloor h / (H / G) \rfloor$, over "
    "the tokens of $C$ that `attention_mask` marks and causality admits; $C = X$ unless a context is given.",
    gradient="Tokens, context and all four weights get the vector-Jacobian product; tokens that are their own "
    "context get the sum of both parts.",
    refusals="Wrong ranks, dtypes that differ, weights whose rows or columns do not fit, numbers of heads that do "
    "not divide, and masks of another shape or of other numbers than 0 and 1 are refused.",
    batch="Batch elements are independent: each can be computed alone.",
    sum_of_heads=COMPARED.wrong(
        "The output is the sum of what each head gives alone, through its own columns and its own rows of $W^O$.",
        "heads that read each other",
        _UNPERMUTED,
    ),
    heads_permuted=COMPARED.wrong(
        "Heads in another order, in the columns of the projections and the rows of $W^O$ alike, give the same output.",
        "heads that are told apart",
        _UNPERMUTED,
    ),
    grouped_is_copied=COMPARED.wrong(
        "With $G$ key heads it is multi-head attention with each key head's columns copied $H / G$ times.",
        "wrong key head",
        _TILED,
        "https://github.com/onnx/onnx/pull/7274",
    ),
    tokens_permuted=COMPARED.wrong(
        "Without causality, tokens in another order give their outputs in that order; the order of a context does not "
        "matter.",
        "dependence on position",
    ),
    own_context=COMPARED.wrong(
        "A context that is $X$ itself gives self-attention, and the gradients of both parts sum to that of $X$.",
        "two readings of the context",
    ),
    causality=COMPARED.leak(
        "Under causality the output at a position depends on no later token, and on every earlier one.",
        "what lies ahead leaks",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
    ),
    padding=COMPARED.leak(
        "A real token's output is the same whether padding is there or not, on either side, whatever number it holds; "
        "so are the gradients of the weights. What padding asks gets a finite answer.",
        "padding that leaks",
        "https://github.com/hyunwoongko/transformer/pull/40",
    ),
    padding_poison=COMPARED.leak(
        "Padding may hold anything, NaN and infinities too: the output of a real token does not change; nor does any "
        "gradient of a real token, where padding is among the keys of a context and asks nothing itself.",
        "zero times NaN",
        "https://github.com/pytorch/pytorch/issues/101967",
    ),
    mask_forms=COMPARED.wrong(
        "A mask of bools, of integers and of floating zeros and ones mean the same, as does one of ones and none.",
        "misread mask",
        "https://github.com/huggingface/transformers/issues/36293",
    ),
    no_key=fragile(
        "A query that sees no key gives a zero row, and no gradient comes from it.",
        "The same exactly in the result; gradients within the bound of the formula.",
        "softmax of nothing",
        "https://github.com/Dao-AILab/flash-attention/issues/443",
        equations=("24a",),
    ),
    range=numerics(
        "The formula has a value where projections leave the range of fp16.",
        "Projections of 1e5 give finite results within the bound of the formula.",
        "overflow",
    ),
) + multi_head_attention.standard("accuracy")

linear_attention = of("linear_attention", "45")

_ELEMENTWISE = "https://github.com/lucidrains/performer-pytorch/issues/21"
_SEVERED = "https://github.com/fla-org/flash-linear-attention/pull/875"

LINEAR_ATTENTION = linear_attention.standard(
    "contract equation gradient purity layout refusals batch sensitivity",
    equation=(
        r"$\varphi(Q)(\varphi(K)^\top V) / \varphi(Q)(\varphi(K)^\top \mathbf 1)$ over the keys that a query sees, "
        r"with $\varphi(x) = \mathrm{elu}(x) + 1$ and one scalar in the denominator of each query.",
        _ELEMENTWISE,
    ),
    gradient=(
        r"$\bar V = P^\top g$, $\bar A = (g V^\top - \mathrm{rowsum}(g \odot O)) / D$ where visible, "
        r"$\bar Q = \bar A \varphi(K) \odot \varphi'(Q)$, $\bar K = \bar A^\top \varphi(Q) \odot \varphi'(K)$: "
        "through numerator and normaliser.",
        _SEVERED,
    ),
    refusals="Wrong ranks, dtypes that differ, sizes that do not match, grouped heads and unknown feature maps are "
    "refused.",
    batch="Batch elements and heads are independent: each can be computed alone.",
    prefix=COMPARED.wrong(
        "The causal form at a position is the other form of that query over the keys up to it: parallel, chunked and "
        "recurrent forms agree.",
        "state off by one",
        _ELEMENTWISE,
    ),
    causality=COMPARED.leak(
        "Under causality the output at a position depends on no later key or value, and on every earlier one.",
        "what lies ahead leaks",
    ),
    keys_permuted=COMPARED.wrong(
        "Keys and values in another order give the same; queries in another order give that order.",
        "dependence on position",
    ),
    convexity=COMPARED.wrong(
        "Each result lies between the extremes of the values that its query sees; equal values come out unchanged.",
        "weights that are not a distribution",
        _ELEMENTWISE,
    ),
    linear_in_values=COMPARED.wrong("The result is linear in $V$.", "not linear in the values"),
    duplicated_keys=COMPARED.wrong(
        "Every key and value given twice changes nothing: the normaliser counts them too.",
        "normaliser that does not follow the sum",
        _ELEMENTWISE,
    ),
    range=FINITE_HALF.numerics(
        "Features, their products and their sums over the keys may be beyond the range of a half: the mean of values "
        "is not.",
        "overflow in half precision",
    ),
    empty_row=fragile(
        "A query that sees no key, by causality or for want of keys, gives a zero row with zero gradient.",
        "Result and gradients lie within the bound of the formula, which is 0 at such rows.",
        "0 divided by 0",
        equations=("45", "24a"),
    ),
    chunks=wrong(
        "The formula holds for sequences longer than a chunk, and not multiples of one.",
        "Result and gradients lie within the running error bound of the formula.",
        "chunk edge",
        _SEVERED,
        kind=Kind.EQUATION,
    ),
) + linear_attention.standard("accuracy")

_STORED = Relation("The same, exactly: what is stored is not computed with.")
_FORMULA_OR_SUM = Relation("The same within the bound of the formula, or the sum of the bounds of what is compared.")
_SCALES = "https://github.com/sgl-project/sglang/pull/20705"
_WINDOW = "https://github.com/huggingface/transformers/issues/39408"

KV_CACHE = of("kv_cache", "42", "43").standard(
    "contract equation purity layout refusals numpy_numbers",
    equation=r"$K \gets \mathrm{concat}(K, k_{\mathrm{new}})$ and $V \gets \mathrm{concat}(V, v_{\mathrm{new}})$: "
    "after every update keys and values are those of all tokens so far, oldest first.",
    refusals="Sizes that are negative or no integers, unknown quantizations and dtypes, empty windows; updates of "
    "another shape, dtype or of too many tokens, and orders that are not one int64 element of the batch each are "
    "refused.",
    history=_STORED.wrong(
        "After any sequence of updates, reorders, resets and refused updates a cache shows, and counts, what a plain "
        "list of rows would.",
        "stale state",
    ),
    overflow=_STORED.wrong(
        "More tokens than `max_length` are refused, and a refused update changes nothing; exactly as many are taken.",
        "lost tokens",
    ),
    window=_STORED.wrong(
        r"With a window $w$ an update of $n$ rows shows the latest $\min(m, w - 1) + n$ rows, where $m$ came before, "
        "for any chunks around $w$; `length` counts all of them.",
        "window off by one",
        _WINDOW,
        "https://github.com/trymirai/lalamo/pull/200",
    ),
    reorder=_STORED.leak(
        "After a reorder, batch element $b$ shows the rows of element `index[b]` in keys and values alike, and goes on "
        "from them, also where elements repeat.",
        "stale rows after a reorder",
    ),
    long=_STORED.wrong(
        "What holds for a few rows holds for hundreds: however they fill pages of 16 to 256 rows, at once, in two or "
        "token by token, all of them are shown.",
        "page edge",
    ),
    int8=wrong(
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

CACHED_ATTENTION = of("cached_attention", "44").standard(
    "contract equation gradient purity layout refusals batch sensitivity long numpy_numbers",
    equation=r"$\mathrm{softmax}(q_{\mathrm{new}} K^\top / \sqrt{d_k}) V$ over the cache with the new rows "
    "appended, causal, with scale and soft-cap as in attention and the window of the cache.",
    gradient="New queries, keys and values get the vector-Jacobian product of attention at their rows.",
    refusals="Wrong ranks, dtypes that differ, heads that do not divide, lengths and widths that do not match, bad "
    "scales and caps, and more tokens than there is room for are refused.",
    batch="Batch elements and groups of heads are independent: each can be computed alone.",
    chunks=_FORMULA_OR_SUM.wrong(
        "However a text is cut into calls, with a window or without, outputs are those of one call: prefill is "
        "decoding.",
        "decoding that differs from prefill",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        _WINDOW,
    ),
    reorder=_FORMULA_OR_SUM.leak(
        "After a reorder every batch element goes on as if the text of the element that it follows had been its own.",
        "stale rows after a reorder",
    ),
    forgotten=_FORMULA_OR_SUM.leak(
        "What was there before a reset, and what a window has left behind, may hold anything, NaN too: it does not "
        "matter.",
        "stale rows after a reset",
    ),
    overflow=_FORMULA_OR_SUM.wrong(
        "A call with more tokens than there is room for is refused, and the next one gives what it would have given.",
        "half an update",
    ),
    causality=_FORMULA_OR_SUM.leak(
        "Among the new tokens, a query sees none after it; it sees every one before it, in the cache or not.",
        "what lies ahead leaks",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
    ),
    int8=wrong(
        "Over a cache of bytes the output is attention over keys and values within half a step of those given, with "
        "scale, soft-cap and window as over any cache.",
        "Within the bound of the formula with every key and value in doubt by half a step of its row.",
        "wrong scale",
        _SCALES,
        kind=Kind.NUMERICS,
    ),
)

_AFTER_NORM = "https://github.com/Howuhh/faster-trajectory-transformer/issues/3"
_BEFORE_NORM = "https://github.com/NVIDIA-NeMo/Speech/pull/4350"

TRANSFORMER_BLOCK = of("transformer_block", "32", "33", "34", "35").standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
    equation=(
        r"Pre: $h = x + \mathrm{MHA}(\mathrm{LN}_1(x))$, $y = h + \mathrm{FFN}(\mathrm{LN}_2(h))$; post: "
        r"$h = \mathrm{LN}_1(x + \mathrm{MHA}(x))$, $y = \mathrm{LN}_2(h + \mathrm{FFN}(h))$.",
        _AFTER_NORM,
        _BEFORE_NORM,
    ),
    gradient="The tokens and all twelve parameters get the vector-Jacobian product, through the branches and "
    "around them.",
    refusals="Wrong ranks, missing parameters, shapes and dtypes that do not match, numbers of heads that do not "
    "divide, unknown words for `norm` and `activation`, and a negative `eps` are refused.",
    batch="Batch elements are independent: each can be computed alone.",
    identity_path=COMPARED.wrong(
        "With $W^O$, $W_2$ and $b_2$ zero a pre-norm block is the identity, and a post-norm block two layer norms; so "
        "are the gradients of $x$.",
        "residual taken after the norm",
        _AFTER_NORM,
        _BEFORE_NORM,
    ),
    stream_shift=COMPARED.wrong(
        "A number added to all features of a token comes out of a pre-norm block unchanged, and vanishes in a "
        "post-norm block whose attention writes nothing.",
        "norm at the wrong place",
        _AFTER_NORM,
        _BEFORE_NORM,
    ),
    one_branch=COMPARED.wrong(
        "With $W_2$ and $b_2$ zero tokens meet only in attention; with $W^O$ zero each token is computed by itself.",
        "branch at the wrong place",
    ),
    tokens_permuted=COMPARED.wrong(
        "Without causality, tokens in another order give their outputs in that order.", "dependence on position"
    ),
    causality=COMPARED.leak(
        "Under causality the output at a position depends on no later token, and on every earlier one.",
        "what lies ahead leaks",
    ),
    padding=COMPARED.leak(
        "A real token's output is the same whether padding is there or not, on either side, whatever number it holds; "
        "attention adds nothing to a token that sees no key.",
        "padding that leaks",
        "https://github.com/hyunwoongko/transformer/pull/40",
    ),
    range=numerics(
        "The formula has a value where branches leave the range of fp16.",
        "Hidden values of 1e5 give finite results within the bound of the formula.",
        "overflow",
    ),
)

REQUIREMENTS = (*MULTI_HEAD_ATTENTION, *LINEAR_ATTENTION, *KV_CACHE, *CACHED_ATTENTION, *TRANSFORMER_BLOCK)
