"""Requirements of gradient accumulation (documents 000 and 001, section 9.2)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

_PRECEDENTS = (
    "https://github.com/huggingface/transformers/pull/35438",
    "https://github.com/modelscope/ms-swift/pull/10084",
)

REQUIREMENTS = (
    templates.contract("accumulate_gradients"),
    templates.equation(
        "accumulate_gradients",
        (),
        r"$\sum_k \nabla S_k / \sum_k n_k$ for every parameter: the gradient of the mean loss over all tokens at once.",
        (*_PRECEDENTS, "https://github.com/catalyst-team/catalyst/issues/1319"),
    ),
    *templates.refusals(
        "accumulate_gradients", "What is no function for a loss, no parameters and no micro-batches are refused."
    ),
    templates.sensitivity("accumulate_gradients"),
    templates.law(
        "accumulate_gradients",
        "partition",
        "However the tokens are split into micro-batches, also in parts of different sizes and empty ones, the "
        "gradient is the same.",
        "Two splits of the same tokens differ by at most the sum of both bounds.",
        "gradient that depends on the split",
        precedents=_PRECEDENTS,
        weight=Weight.WRONG,
    ),
    templates.law(
        "accumulate_gradients",
        "duplicates",
        "All micro-batches given twice have the same mean loss, and so the same gradient.",
        "The same within the sum of both bounds.",
        "sum in place of a mean",
        precedents=_PRECEDENTS,
        weight=Weight.WRONG,
    ),
    templates.contract_case(
        "accumulate_gradients",
        "no_tokens",
        "Over no token, in empty micro-batches or in none, the gradients are 0.",
        "division by zero",
        weight=Weight.FRAGILE,
    ),
    templates.contract_case(
        "accumulate_gradients",
        "unused_parameters",
        "A parameter that the loss does not use has the gradient 0.",
        "missing gradient",
        weight=Weight.WRONG,
    ),
    templates.contract_case(
        "accumulate_gradients",
        "grad_untouched",
        "What parameters hold in `grad` is neither read nor written.",
        "gradients left behind",
        weight=Weight.LEAK,
    ),
)
