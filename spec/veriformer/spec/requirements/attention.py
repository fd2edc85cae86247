"""Requirements of attention and its causal mask (equations 20 to 24a)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import (
    CASE,
    CLAIMED,
    COMPARED,
    EXACT,
    FORMULA,
    Relation,
    fragile,
    numerics,
    of,
    wrong,
)

CAUSAL_MASK = of("causal_mask", "24a").standard(
    "contract equation refusals sensitivity numpy_numbers long",
    equation=r"Query $i$ sees key $j$ exactly if $j \le i + n_k - n_q$ and, with a window $w$, "
    "$j > i + n_k - n_q - w$.",
    refusals="Negative lengths and windows below 1 are refused.",
    window=EXACT.wrong(
        r"At the edges $n_k \in \{w - 1, w, w + 1\}$ the window holds exactly $w$ keys, the query's own among them.",
        "window off by one",
        "https://github.com/huggingface/transformers/issues/39408",
    ),
    nested=EXACT.wrong(
        "Without a window each query sees what the one before it saw, and at most one key more; the last one sees a "
        "key.",
        "holes in the mask",
    ),
    fresh=CASE.leak("A mask belongs to its caller: changing it changes no later one.", "shared result"),
    alignment=CLAIMED.wrong(
        "With lengths that differ, the last query sees the last key.",
        "causal edge at the wrong corner",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        "https://github.com/trymirai/lalamo/pull/200",
    ),
)

_EQUATIONS = ("20", "21", "22", "23", "24a")

attention = of("attention", *_EQUATIONS, contract=("20",), gradient=("20", "21", "22", "23"))

_CHANCE = Relation("The share observed lies where Chernoff's bound has it, but for one right implementation in 1e9.")

ATTENTION = attention.standard(
    "contract equation gradient purity layout refusals batch sensitivity numpy_numbers",
    equation=r"$O = \mathrm{softmax}(c \tanh(s\, Q K^\top / c) + B)\, V$ over the keys that mask, causality and window "
    r"admit, with $s = 1 / \sqrt{d_k}$ unless given, for any combination of options.",
    gradient=r"$\bar V = P^\top \bar O$, $\bar P = \bar O V^\top$, "
    r"$\bar S = P \odot (\bar P - \mathrm{rowsum}(P \odot \bar P))$, $\bar Q = s \bar S' K$, "
    r"$\bar K = s \bar S'^\top Q$, $\bar B = \bar S$ summed over broadcast axes.",
    layout="https://github.com/pytorch/pytorch/pull/184180",
    refusals="Wrong ranks, dtypes that differ, sizes that do not match (nothing is broadcast but mask and bias), "
    "heads that the groups do not divide, masks that are not bool, windows below 1 or without causality, caps that "
    "are not above 0 and probabilities outside $[0, 1]$ are refused.",
    batch=(
        "Batch elements and groups of heads are independent: each can be computed alone.",
        "https://github.com/pytorch/pytorch/pull/184180",
    ),
    sensitivity=(
        "https://github.com/sgl-project/sgl-kernel-xpu/pull/491",
        "https://github.com/zzhhjjj/gemma-triton-flash-attn/issues/6",
        "https://github.com/huggingface/transformers/issues/36293",
    ),
    scale=FORMULA.wrong(
        r"The scores are multiplied by `scale`, which may be 0 or negative, and by $1 / \sqrt{d_k}$ only where none is "
        "given.",
        "wrong scale",
        "https://github.com/pytorch/pytorch/pull/105202",
        "https://github.com/zzhhjjj/gemma-triton-flash-attn/issues/6",
        "https://github.com/lucidrains/vit-pytorch/issues/65",
        equations=(*_EQUATIONS, "24b"),
    ),
    softcap=FORMULA.wrong(
        "Scaled scores are capped by $c \\tanh(s / c)$, also where they are far beyond $c$.",
        "wrong soft-cap",
        "https://github.com/unslothai/unsloth-zoo/pull/593",
        "https://github.com/sgl-project/sgl-kernel-xpu/pull/491",
    ),
    grouped_heads=FORMULA.wrong(
        "Query head $h$ reads key head $\\lfloor h / (H / G) \\rfloor$, for $1 < G < H$.",
        "wrong key head",
        "https://github.com/onnx/onnx/pull/7274",
        "https://github.com/datawhalechina/tiny-universe/issues/21",
    ),
    widths=FORMULA.wrong("Values may be wider or narrower than keys.", "one width for two"),
    mask=FORMULA.wrong(
        "A mask of rank 2 to 4, each axis full or 1, admits exactly the pairs that it marks, beside causality or "
        "alone.",
        "misread mask",
        "https://github.com/pytorch/pytorch/pull/184180",
        "https://github.com/NVIDIA-NeMo/Automodel/pull/2658",
    ),
    padding=FORMULA.leak(
        "A mask over keys hides the first or the last keys of each batch element from every query.",
        "misread padding",
        "https://github.com/hyunwoongko/transformer/pull/40",
        "https://github.com/huggingface/transformers/issues/36293",
    ),
    packing=FORMULA.leak(
        "With several documents in one row, a query sees the keys of its own document alone.",
        "attention across documents",
        "https://github.com/huggingface/nanoVLM/pull/204",
    ),
    bias=FORMULA.wrong(
        "A bias of rank 2 to 4, each axis full or 1, is added after scale and cap; its gradient sums over what was "
        "broadcast.",
        "misplaced bias",
        "https://github.com/pytorch/pytorch/issues/134050",
    ),
    bias_dtype=FORMULA.wrong(
        "A bias may have another dtype than the scores; its gradient has its own.", "changed dtype"
    ),
    window=FORMULA.wrong(
        "A window of $w$ leaves each query the $w$ latest keys that causality admits, for lengths around $w$.",
        "window off by one",
        "https://github.com/huggingface/transformers/issues/39408",
        "https://github.com/trymirai/lalamo/pull/200",
    ),
    alignment=CLAIMED.wrong(
        "With lengths that differ, causality lets the last query see the last key.",
        "causal edge at the wrong corner",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        equations=("24a",),
    ),
    long=FORMULA.wrong(
        "The formula holds for sequences longer than a tile, not multiples of one, for many heads and for wide ones, "
        "with peaked scores and any options.",
        "tile edge",
        "https://github.com/carlushuang/gcnasm/pull/21",
        "https://github.com/HabanaAI/vllm-hpu-extension/pull/413",
        "https://github.com/NVIDIA/TransformerEngine/issues/3216",
        "https://github.com/pytorch/pytorch/issues/103462",
    ),
    partial_tiles=FORMULA.wrong(
        "The formula holds where both lengths are several tiles and a rest, and the rests differ.",
        "tile edge",
        "https://github.com/carlushuang/gcnasm/pull/21",
    ),
    key_tiles=FORMULA.wrong(
        "A key keeps its own bias, its own mask and its own weight in whatever tile it lies, also where one key scores "
        "far above all others.",
        "tile of another key",
        "https://github.com/bledden/triton-msl/pull/7",
    ),
    long_windows=FORMULA.wrong(
        "The formula holds where whole tiles of keys are hidden before the first visible one.",
        "hidden tile",
        "https://github.com/pytorch/pytorch/issues/109517",
    ),
    far_positions=fragile(
        "Positions are whole numbers in every dtype: far into a text, too, causality and a window show each query "
        "exactly its own keys.",
        "The weight of a hidden key is below $2^{-22}$ and that of a visible one above it, read off the result and off "
        "the gradient of $V$; no number is judged.",
        "rounded position",
        equations=("24a",),
    ),
    decoding=wrong(
        "The formula holds for one or two queries over many keys, of which they may see few, for many heads, large "
        "groups and large batches, and wherever the scores lie.",
        "For 64 to 2050 keys, result and gradients lie within their bounds; all scores may be lower by 200.",
        "parts of the keys put together wrongly",
        "https://github.com/tile-ai/tilelang/issues/328",
        "https://github.com/ml-explore/mlx/issues/4022",
        "https://github.com/Dao-AILab/flash-attention/issues/2082",
        kind=Kind.EQUATION,
        equations=("23", "24a"),
    ),
    many_heads=fragile(
        "Heads and batch elements are independent, however many there are.",
        "Result and gradients of 300, of 65537 on a GPU, with a key each lie within their bounds.",
        "more heads than a grid has room for",
        "https://github.com/pytorch/pytorch/issues/142228",
        kind=Kind.EQUATION,
        equations=("23",),
    ),
    low_scores=numerics(
        "Hidden keys have no weight, however low the visible ones score.",
        r"Where every visible key scores $-1.2 \cdot 10^5$, or half of that, the weight of each is above $2^{-10}$ and "
        "that of a hidden one below, read off the result; no number is judged.",
        "hidden by a number that scores can undercut",
        "https://github.com/TransformerLensOrg/TransformerLens/issues/318",
        equations=("24a",),
    ),
    causality=COMPARED.leak(
        "Under causality, with a window or without, changing keys and values that a query cannot see leaves its result "
        "as it is; changing those it sees does not.",
        "what lies ahead leaks",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
    ),
    causal_is_mask=COMPARED.wrong(
        "Causality and a window are the mask that says the same, in result and gradients.",
        "two readings of causality",
        "https://github.com/HabanaAI/vllm-hpu-extension/pull/413",
    ),
    mask_is_bias=COMPARED.wrong(
        "A mask is a bias of 0 and $-\\infty$, in result and gradients.", "two readings of a mask"
    ),
    mask_broadcast=COMPARED.wrong(
        "A mask with axes of 1 is its broadcast copy, in result and gradients.",
        "misread mask",
        "https://github.com/pytorch/pytorch/pull/184180",
    ),
    grouped_is_copied=COMPARED.wrong(
        "Attention with $G$ groups is attention with each key head copied $H / G$ times.",
        "wrong key head",
        "https://github.com/onnx/onnx/pull/7274",
    ),
    permutation=COMPARED.wrong(
        "Keys, values and mask in another order give the same result; queries in another order give that order.",
        "dependence on position",
    ),
    key_shift=COMPARED.wrong(
        "Without a cap, one vector added to all keys of a head changes neither the result nor the gradients of $Q$ and "
        "$V$.",
        "not invariant to shifts",
    ),
    conservation=COMPARED.wrong(
        r"$\sum_j \bar S_{ij} = 0$: without a cap the gradient of $K$ sums to 0 over keys, that of a full bias over "
        "each row.",
        "gradient that does not conserve",
        "https://github.com/aws-neuron/nki-samples/pull/81",
        "https://github.com/Dao-AILab/flash-attention/pull/2481",
    ),
    scale_balance=COMPARED.wrong(
        r"Scores depend on the product of $Q$ and $K$ alone: $\langle Q, \bar Q \rangle = \langle K, \bar K \rangle$.",
        "gradient that does not balance",
        "https://github.com/Dao-AILab/flash-attention/pull/2481",
    ),
    convexity=COMPARED.wrong(
        "Each result lies between the extremes of the values that its query sees; equal values come out unchanged.",
        "weights that are not a distribution",
    ),
    linear_in_values=COMPARED.wrong("The result is linear in $V$.", "not linear in the values"),
    empty_row=CLAIMED.fragile(
        "A query that sees no key, hidden by mask, bias or causality or for want of keys, gives a zero row with zero "
        "gradient.",
        "softmax of nothing",
        "https://github.com/Dao-AILab/flash-attention/issues/443",
        "https://github.com/NVIDIA-NeMo/Automodel/pull/2658",
        equations=("24a",),
    ),
    no_query=CASE.fragile(
        "Without a query the result is empty, and the gradients of $K$ and $V$ are 0.", "size of zero", equations=()
    ),
    hidden_poison=COMPARED.leak(
        "Keys and values that a query cannot see may hold anything, NaN and infinities too: neither its result nor its "
        "gradient changes.",
        "zero times NaN",
        "https://github.com/pytorch/pytorch/issues/101967",
    ),
    hidden_scores=FORMULA.leak(
        "What is hidden has weight 0, however far its score lies above the visible ones, or these below 0.",
        "mask that is not low enough",
    ),
    range=numerics(
        "The formula has a value for scores of any size.",
        "Scores of 1e5, beyond fp16, give finite results and gradients within their bounds.",
        "overflow",
        "https://github.com/ultralytics/ultralytics/pull/24990",
        equations=("21",),
    ),
) + attention.standard(
    "accuracy",
    accuracy="https://github.com/NVIDIA/TransformerEngine/issues/3216",
    dropout_off=FORMULA.wrong(
        "With $p = 0$, and whenever it is not training, dropout does nothing.", "dropout that stays on"
    ),
    dropout_scale=FORMULA.wrong(
        "In training every weight becomes 0 or $w / (1 - p)$, not renormalised; with $p = 1$ all are 0, and so is the "
        "gradient.",
        "wrong scale of dropout",
        "https://github.com/kaldi-asr/kaldi/issues/2814",
        equations=("46",),
    ),
    dropout_generator=CASE.wrong(
        "Equal states of the generator drop the same weights in calls of equal shapes, other states others; without "
        "one, each call draws anew.",
        "randomness out of control",
        equations=("46",),
    ),
    dropout_rate=_CHANCE.wrong(
        "Each weight is dropped with probability $p$.",
        "wrong rate of dropout",
        "https://github.com/titu1994/Inception-v4/issues/5",
        equations=("46",),
    ),
    dropout_independence=_CHANCE.wrong(
        "Weights are dropped independently of one another, along every axis.",
        "shared random numbers",
        "https://github.com/pytorch/pytorch/issues/198333",
        "https://github.com/PaddlePaddle/PaddleFleetX/pull/1005",
        equations=("46",),
    ),
    dropout_gradient=wrong(
        r"With the weights $M$ that the forward pass kept, $\bar P = M \odot \bar O V^\top / (1 - p)$ and "
        r"$\bar V = (M \odot P)^\top \bar O / (1 - p)$, while "
        r"$\bar S = P \odot (\bar P - \mathrm{rowsum}(P \odot \bar P))$.",
        "The same within the bounds of the formula for the mask read off the result of the same call.",
        "another mask in the backward pass",
        "https://github.com/aws-neuron/nki-samples/pull/81",
        "https://github.com/allenai/OLMo-core/pull/828",
        kind=Kind.GRADIENT,
        equations=("46",),
    ),
    dropout_long=FORMULA.wrong(
        "Forward and backward pass drop the same weights in sequences longer than a tile, too.",
        "another mask in the backward pass",
        "https://github.com/aws-neuron/nki-samples/pull/81",
        equations=("46",),
    ),
)

REQUIREMENTS = (*CAUSAL_MASK, *ATTENTION)
