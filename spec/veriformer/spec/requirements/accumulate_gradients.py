"""Requirements of gradient accumulation (documents 000 and 001, section 9.2)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

accumulate_gradients = templates.of("accumulate_gradients")

_PRECEDENTS = (
    "https://github.com/huggingface/transformers/pull/35438",
    "https://github.com/modelscope/ms-swift/pull/10084",
)

REQUIREMENTS = (
    *accumulate_gradients.standard(
        "contract equation refusals sensitivity",
        equation=(
            r"$\sum_k \nabla S_k / \sum_k n_k$ for every parameter: the gradient of the mean loss over all tokens at "
            "once.",
            *_PRECEDENTS,
            "https://github.com/catalyst-team/catalyst/issues/1319",
        ),
        refusals="What is no function for a loss, no parameters and no micro-batches are refused.",
    ),
    accumulate_gradients.wrong(
        "partition",
        "However the tokens are split into micro-batches, also in parts of different sizes and empty ones, the "
        "gradient is the same.",
        "Two splits of the same tokens differ by at most the sum of both bounds.",
        "gradient that depends on the split",
        *_PRECEDENTS,
    ),
    accumulate_gradients.wrong(
        "duplicates",
        "All micro-batches given twice have the same mean loss, and so the same gradient.",
        "The same within the sum of both bounds.",
        "sum in place of a mean",
        *_PRECEDENTS,
    ),
    accumulate_gradients.contract_case(
        "no_tokens",
        "Over no token, in empty micro-batches or in none, the gradients are 0.",
        "division by zero",
        weight=Weight.FRAGILE,
    ),
    accumulate_gradients.contract_case(
        "unused_parameters",
        "A parameter that the loss does not use has the gradient 0.",
        "missing gradient",
        weight=Weight.WRONG,
    ),
    accumulate_gradients.contract_case(
        "grad_untouched",
        "What parameters hold in `grad` is neither read nor written.",
        "gradients left behind",
        weight=Weight.LEAK,
    ),
)
