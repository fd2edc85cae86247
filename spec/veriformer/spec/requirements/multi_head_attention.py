"""Requirements of multi-head attention (equations 26 and 27)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates

_NAME = "multi_head_attention"
_EQUATIONS = ("26", "27")
_TILED = "https://github.com/datawhalechina/tiny-universe/issues/21"
_UNPERMUTED = "https://github.com/lucidrains/vit-pytorch/issues/65"


def _law(name: str, statement: str, bug_class: str, *precedents: str, weight: Weight) -> Requirement:
    floating_point_statement = "The same within the sum of the bounds of what is compared."
    return templates.law(
        _NAME,
        name,
        statement,
        floating_point_statement,
        bug_class,
        equations=_EQUATIONS,
        precedents=precedents,
        weight=weight,
    )


REQUIREMENTS = (
    templates.contract(_NAME, _EQUATIONS),
    templates.equation(
        _NAME,
        _EQUATIONS,
        r"$\mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_H) W^O$ with $\mathrm{head}_h = "
        r"\mathrm{Attention}(X W^Q_h, C W^K_g, C W^V_g)$, $g = \lfloor h / (H / G) \rfloor$, over the tokens of $C$ "
        r"that `attention_mask` marks and causality admits; $C = X$ unless a context is given.",
    ),
    templates.gradient(
        _NAME,
        _EQUATIONS,
        "Tokens, context and all four weights get the vector-Jacobian product; tokens that are their own context get "
        "the sum of both parts.",
    ),
    templates.purity(_NAME),
    templates.layout(_NAME),
    *templates.refusals(
        _NAME,
        "Wrong ranks, dtypes that differ, weights whose rows or columns do not fit, numbers of heads that do not "
        "divide, and masks of another shape or of other numbers than 0 and 1 are refused.",
    ),
    templates.batch(_NAME, "Batch elements are independent: each can be computed alone."),
    templates.sensitivity(_NAME),
    templates.numpy_numbers(_NAME),
    templates.long(_NAME),
    _law(
        "sum_of_heads",
        "The output is the sum of what each head gives alone, through its own columns and its own rows of $W^O$.",
        "heads that read each other",
        _UNPERMUTED,
        weight=Weight.WRONG,
    ),
    _law(
        "heads_permuted",
        "Heads in another order, in the columns of the projections and the rows of $W^O$ alike, give the same output.",
        "heads that are told apart",
        _UNPERMUTED,
        weight=Weight.WRONG,
    ),
    _law(
        "grouped_is_copied",
        "With $G$ key heads it is multi-head attention with each key head's columns copied $H / G$ times.",
        "wrong key head",
        _TILED,
        "https://github.com/onnx/onnx/pull/7274",
        weight=Weight.WRONG,
    ),
    _law(
        "tokens_permuted",
        "Without causality, tokens in another order give their outputs in that order; the order of a context does not "
        "matter.",
        "dependence on position",
        weight=Weight.WRONG,
    ),
    _law(
        "own_context",
        "A context that is $X$ itself gives self-attention, and the gradients of both parts sum to that of $X$.",
        "two readings of the context",
        weight=Weight.WRONG,
    ),
    _law(
        "causality",
        "Under causality the output at a position depends on no later token, and on every earlier one.",
        "what lies ahead leaks",
        "https://github.com/Dao-AILab/flash-attention/issues/282",
        weight=Weight.LEAK,
    ),
    _law(
        "padding",
        "A real token's output is the same whether padding is there or not, on either side, whatever number it holds; "
        "so are the gradients of the weights. What padding asks gets a finite answer.",
        "padding that leaks",
        "https://github.com/hyunwoongko/transformer/pull/40",
        weight=Weight.LEAK,
    ),
    _law(
        "padding_poison",
        "Padding may hold anything, NaN and infinities too: the output of a real token does not change; nor does any "
        "gradient of a real token, where padding is among the keys of a context and asks nothing itself.",
        "zero times NaN",
        "https://github.com/pytorch/pytorch/issues/101967",
        weight=Weight.LEAK,
    ),
    _law(
        "mask_forms",
        "A mask of bools, of integers and of floating zeros and ones mean the same, as does one of ones and none.",
        "misread mask",
        "https://github.com/huggingface/transformers/issues/36293",
        weight=Weight.WRONG,
    ),
    templates.law(
        _NAME,
        "no_key",
        "A query that sees no key gives a zero row, and no gradient comes from it.",
        "The same exactly in the result; gradients within the bound of the formula.",
        "softmax of nothing",
        equations=("24a",),
        precedents=("https://github.com/Dao-AILab/flash-attention/issues/443",),
        weight=Weight.FRAGILE,
    ),
    templates.law(
        _NAME,
        "range",
        "The formula has a value where projections leave the range of fp16.",
        "Projections of 1e5 give finite results within the bound of the formula.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=_EQUATIONS,
        weight=Weight.FRAGILE,
    ),
    templates.accuracy(_NAME),
)
