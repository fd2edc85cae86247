"""Requirements of the Transformer block (equations 32 to 35)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

transformer_block = templates.of("transformer_block", "32", "33", "34", "35")

_AFTER_NORM = "https://github.com/Howuhh/faster-trajectory-transformer/issues/3"
_BEFORE_NORM = "https://github.com/NVIDIA-NeMo/Speech/pull/4350"


REQUIREMENTS = (
    *transformer_block.standard(
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
    ),
    transformer_block.agreement(
        "identity_path",
        "With $W^O$, $W_2$ and $b_2$ zero a pre-norm block is the identity, and a post-norm block two layer norms; so "
        "are the gradients of $x$.",
        "residual taken after the norm",
        _AFTER_NORM,
        _BEFORE_NORM,
        weight=Weight.WRONG,
    ),
    transformer_block.agreement(
        "stream_shift",
        "A number added to all features of a token comes out of a pre-norm block unchanged, and vanishes in a "
        "post-norm block whose attention writes nothing.",
        "norm at the wrong place",
        _AFTER_NORM,
        _BEFORE_NORM,
        weight=Weight.WRONG,
    ),
    transformer_block.agreement(
        "one_branch",
        "With $W_2$ and $b_2$ zero tokens meet only in attention; with $W^O$ zero each token is computed by itself.",
        "branch at the wrong place",
        weight=Weight.WRONG,
    ),
    transformer_block.agreement(
        "tokens_permuted",
        "Without causality, tokens in another order give their outputs in that order.",
        "dependence on position",
        weight=Weight.WRONG,
    ),
    transformer_block.agreement(
        "causality",
        "Under causality the output at a position depends on no later token, and on every earlier one.",
        "what lies ahead leaks",
        weight=Weight.LEAK,
    ),
    transformer_block.agreement(
        "padding",
        "A real token's output is the same whether padding is there or not, on either side, whatever number it holds; "
        "attention adds nothing to a token that sees no key.",
        "padding that leaks",
        "https://github.com/hyunwoongko/transformer/pull/40",
        weight=Weight.LEAK,
    ),
    transformer_block.numerics(
        "range",
        "The formula has a value where branches leave the range of fp16.",
        "Hidden values of 1e5 give finite results within the bound of the formula.",
        "overflow",
    ),
)
