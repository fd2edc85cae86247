"""Requirements of multi-head attention (equations 26 and 27)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

multi_head_attention = templates.of("multi_head_attention", "26", "27")

_TILED = "https://github.com/datawhalechina/tiny-universe/issues/21"
_UNPERMUTED = "https://github.com/lucidrains/vit-pytorch/issues/65"


REQUIREMENTS = (
    *multi_head_attention.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long",
        equation=r"$\mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_H) W^O$ with "
        r"$\mathrm{head}_h = \mathrm{Attention}(X W^Q_h, C W^K_g, C W^V_g)$, $g = \lfloor h / (H / G) \rfloor$, over "
        "the tokens of $C$ that `attention_mask` marks and causality admits; $C = X$ unless a context is given.",
        gradient="Tokens, context and all four weights get the vector-Jacobian product; tokens that are their own "
        "context get the sum of both parts.",
        refusals="Wrong ranks, dtypes that differ, weights whose rows or columns do not fit, numbers of heads that do "
        "not divide, and masks of another shape or of other numbers than 0 and 1 are refused.",
        batch="Batch elements are independent: each can be computed alone.",
    ),
    multi_head_attention.agreement(
        "sum_of_heads",
        "The output is the sum of what each head gives alone, through its own columns and its own rows of $W^O$.",
        "heads that read each other",
        _UNPERMUTED,
        weight=Weight.WRONG,
    ),
    multi_head_attention.agreement(
        "heads_permuted",
        "Heads in another order, in the columns of the projections and the rows of $W^O$ alike, give the same output.",
        "heads that are told apart",
        _UNPERMUTED,
        weight=Weight.WRONG,
    ),
    multi_head_attention.agreement(
        "grouped_is_copied",
        "With $G$ key heads it is multi-head attention with each key head's columns copied $H / G$ times.",
        "wrong key head",
        _TILED,
        "https://github.com/onnx/onnx/pull/7274",
        weight=Weight.WRONG,
    ),
    multi_head_attention.agreement(
        "tokens_permuted",
        "Without causality, tokens in another order give their outputs in that order; the order of a context does not "
        "matter.",
        "dependence on position",
        weight=Weight.WRONG,
    ),
    multi_head_attention.agreement(
        "own_context",
        "A context that is $X$ itself gives self-attention, and the gradients of both parts sum to that of $X$.",
        "two readings of the context",
        weight=Weight.WRONG,
    ),
    multi_head_attention.agreement(
        "causality",
        "Under causality the output at a position depends on no later token, and on every earlier one.",
        "what lies ahead leaks",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        weight=Weight.LEAK,
    ),
    multi_head_attention.agreement(
        "padding",
        "A real token's output is the same whether padding is there or not, on either side, whatever number it holds; "
        "so are the gradients of the weights. What padding asks gets a finite answer.",
        "padding that leaks",
        "https://github.com/hyunwoongko/transformer/pull/40",
        weight=Weight.LEAK,
    ),
    multi_head_attention.agreement(
        "padding_poison",
        "Padding may hold anything, NaN and infinities too: the output of a real token does not change; nor does any "
        "gradient of a real token, where padding is among the keys of a context and asks nothing itself.",
        "zero times NaN",
        "https://github.com/pytorch/pytorch/issues/101967",
        weight=Weight.LEAK,
    ),
    multi_head_attention.agreement(
        "mask_forms",
        "A mask of bools, of integers and of floating zeros and ones mean the same, as does one of ones and none.",
        "misread mask",
        "https://github.com/huggingface/transformers/issues/36293",
        weight=Weight.WRONG,
    ),
    multi_head_attention.fragile(
        "no_key",
        "A query that sees no key gives a zero row, and no gradient comes from it.",
        "The same exactly in the result; gradients within the bound of the formula.",
        "softmax of nothing",
        "https://github.com/Dao-AILab/flash-attention/issues/443",
        equations=("24a",),
    ),
    multi_head_attention.numerics(
        "range",
        "The formula has a value where projections leave the range of fp16.",
        "Projections of 1e5 give finite results within the bound of the formula.",
        "overflow",
    ),
    multi_head_attention.accuracy(),
)
