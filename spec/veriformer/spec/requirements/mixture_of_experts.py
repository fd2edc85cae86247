"""Requirements of the mixture of experts (document 003, section 8)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

_OPERATION = "mixture_of_experts"

REQUIREMENTS = (
    templates.contract(_OPERATION),
    templates.equation(
        _OPERATION,
        (),
        r"$y = \sum_{e \in T} p_e E_e(x)$ over the `top_k` experts $T$ with the highest scores $x R$, with $p$ the "
        "softmax of those scores alone, and $E_e$ a feed-forward network with the exact GELU.",
    ),
    templates.gradient(
        _OPERATION,
        (),
        "The gradient goes through the gates and the chosen experts; through the choice there is none, and experts "
        "that no token chose get zero.",
    ),
    templates.purity(_OPERATION),
    templates.layout(_OPERATION),
    *templates.refusals(
        _OPERATION,
        "No tensor, weights that do not fit one another, mixed dtypes, and `top_k` below 1 or above the number of "
        "experts are refused.",
    ),
    templates.batch(_OPERATION, "Tokens are independent, without a capacity: each can be computed alone."),
    templates.sensitivity(_OPERATION),
    templates.numpy_numbers(_OPERATION),
    templates.long(_OPERATION),
    templates.accuracy(_OPERATION),
    templates.law(
        _OPERATION,
        "identical_experts",
        "Experts that are all the same answer as one alone: the gates of the chosen sum to 1, whoever they are.",
        "The same within the sum of the bounds of the mixture and of the network alone.",
        "gates not renormalised",
        precedents=("https://github.com/pytorch/torchtitan/issues/1448",),
        weight=Weight.WRONG,
    ),
    templates.law(
        _OPERATION,
        "permutation",
        "Experts have no order where no scores tie: permuting them, with the columns of the router, changes nothing.",
        "The same within the sum of both bounds.",
        "misrouted tokens",
        weight=Weight.WRONG,
    ),
    templates.law(
        _OPERATION,
        "ties",
        "Of equal scores the lower experts are chosen.",
        "For scores that the dtype computes exactly, result and gradients are within the bounds of that choice.",
        "wrong choice of experts",
        weight=Weight.WRONG,
    ),
    templates.law(
        _OPERATION,
        "unchosen",
        "What an expert holds that no token chose changes nothing, and its gradient is zero.",
        "The result is the same within the sum of both bounds; the gradient is zero exactly.",
        "mixed in unchosen experts",
        weight=Weight.LEAK,
    ),
    templates.law(
        _OPERATION,
        "choice",
        "The experts with the highest scores are asked, for scores of any kind.",
        "The same where rounding cannot change the choice.",
        "wrong choice of experts",
        weight=Weight.WRONG,
    ),
    templates.law(
        _OPERATION,
        "range",
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        precedents=("https://github.com/huggingface/transformers/issues/5651",),
        weight=Weight.FRAGILE,
    ),
)
