"""Requirements of the Transformer block (equations 32 to 35)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates

_NAME = "transformer_block"
_EQUATIONS = ("32", "33", "34", "35")
_AFTER_NORM = "https://github.com/Howuhh/faster-trajectory-transformer/issues/3"
_BEFORE_NORM = "https://github.com/NVIDIA-NeMo/Speech/pull/4350"


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
        r"Pre: $h = x + \mathrm{MHA}(\mathrm{LN}_1(x))$, $y = h + \mathrm{FFN}(\mathrm{LN}_2(h))$; post: $h = "
        r"\mathrm{LN}_1(x + \mathrm{MHA}(x))$, $y = \mathrm{LN}_2(h + \mathrm{FFN}(h))$.",
        (_AFTER_NORM, _BEFORE_NORM),
    ),
    templates.gradient(
        _NAME,
        _EQUATIONS,
        "The tokens and all twelve parameters get the vector-Jacobian product, through the branches and around them.",
    ),
    templates.purity(_NAME),
    templates.layout(_NAME),
    *templates.refusals(
        _NAME,
        "Wrong ranks, missing parameters, shapes and dtypes that do not match, numbers of heads that do not divide, "
        "unknown words for `norm` and `activation`, and a negative `eps` are refused.",
    ),
    templates.batch(_NAME, "Batch elements are independent: each can be computed alone."),
    templates.sensitivity(_NAME),
    templates.numpy_numbers(_NAME),
    templates.long(_NAME),
    _law(
        "identity_path",
        "With $W^O$, $W_2$ and $b_2$ zero a pre-norm block is the identity, and a post-norm block two layer norms; so "
        "are the gradients of $x$.",
        "residual taken after the norm",
        _AFTER_NORM,
        _BEFORE_NORM,
        weight=Weight.WRONG,
    ),
    _law(
        "stream_shift",
        "A number added to all features of a token comes out of a pre-norm block unchanged, and vanishes in a "
        "post-norm block whose attention writes nothing.",
        "norm at the wrong place",
        _AFTER_NORM,
        _BEFORE_NORM,
        weight=Weight.WRONG,
    ),
    _law(
        "one_branch",
        "With $W_2$ and $b_2$ zero tokens meet only in attention; with $W^O$ zero each token is computed by itself.",
        "branch at the wrong place",
        weight=Weight.WRONG,
    ),
    _law(
        "tokens_permuted",
        "Without causality, tokens in another order give their outputs in that order.",
        "dependence on position",
        weight=Weight.WRONG,
    ),
    _law(
        "causality",
        "Under causality the output at a position depends on no later token, and on every earlier one.",
        "what lies ahead leaks",
        weight=Weight.LEAK,
    ),
    _law(
        "padding",
        "A real token's output is the same whether padding is there or not, on either side, whatever number it holds; "
        "attention adds nothing to a token that sees no key.",
        "padding that leaks",
        "https://github.com/hyunwoongko/transformer/pull/40",
        weight=Weight.LEAK,
    ),
    templates.law(
        _NAME,
        "range",
        "The formula has a value where branches leave the range of fp16.",
        "Hidden values of 1e5 give finite results within the bound of the formula.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=_EQUATIONS,
        weight=Weight.FRAGILE,
    ),
)
