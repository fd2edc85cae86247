"""Requirements of the mixture of experts (document 003, section 8)."""

from veriformer.spec.requirements import templates

mixture_of_experts = templates.of("mixture_of_experts")

REQUIREMENTS = (
    *mixture_of_experts.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
        equation=r"$y = \sum_{e \in T} p_e E_e(x)$ over the `top_k` experts $T$ with the highest scores $x R$, with "
        "$p$ the softmax of those scores alone, and $E_e$ a feed-forward network with the exact GELU.",
        gradient="The gradient goes through the gates and the chosen experts; through the choice there is none, and "
        "experts that no token chose get zero.",
        refusals="No tensor, weights that do not fit one another, mixed dtypes, and `top_k` below 1 or above the "
        "number of experts are refused.",
        batch="Tokens are independent, without a capacity: each can be computed alone.",
    ),
    mixture_of_experts.wrong(
        "identical_experts",
        "Experts that are all the same answer as one alone: the gates of the chosen sum to 1, whoever they are.",
        "The same within the sum of the bounds of the mixture and of the network alone.",
        "gates not renormalised",
        "https://github.com/pytorch/torchtitan/issues/1448",
    ),
    mixture_of_experts.wrong(
        "permutation",
        "Experts have no order where no scores tie: permuting them, with the columns of the router, changes nothing.",
        "The same within the sum of both bounds.",
        "misrouted tokens",
    ),
    mixture_of_experts.wrong(
        "ties",
        "Of equal scores the lower experts are chosen.",
        "For scores that the dtype computes exactly, result and gradients are within the bounds of that choice.",
        "wrong choice of experts",
    ),
    mixture_of_experts.leak(
        "unchosen",
        "What an expert holds that no token chose changes nothing, and its gradient is zero.",
        "The result is the same within the sum of both bounds; the gradient is zero exactly.",
        "mixed in unchosen experts",
    ),
    mixture_of_experts.wrong(
        "choice",
        "The experts with the highest scores are asked, for scores of any kind.",
        "The same where rounding cannot change the choice.",
        "wrong choice of experts",
    ),
    mixture_of_experts.numerics(
        "range",
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        "https://github.com/huggingface/transformers/issues/5651",
    ),
)
