"""Requirements of what is done with gradients: clipping and accumulation."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import BOTH, CASE, CLAIMED, EXACT, POWERS_OF_TWO, numerics, of, wrong

CLIP_GRAD_NORM = of("clip_grad_norm", "11").standard(
    "contract result_dtype equation purity layout refusals sensitivity numpy_numbers accuracy",
    equation=r"$\tilde g = \min(1, c / \lVert g \rVert_2)\, g$ with the norm of all tensors of the list together, "
    "which is returned too.",
    refusals="No list, missing gradients, and a maximum that is negative or no number are refused.",
    direction=wrong(
        r"$\tilde g$ is a positive multiple of $g$.",
        r"$\tilde g - g \langle \tilde g, g \rangle / \lVert g \rVert^2$ is at most what the bounds on the entries "
        "leave to it.",
        "changed direction",
    ),
    norm_bound=wrong(
        r"$\lVert \tilde g \rVert = \min(c, \lVert g \rVert)$.",
        "The same within the norm of the bounds on the entries.",
        "wrong length",
        "https://github.com/areal-project/AReaL/issues/312",
        "https://github.com/milesial/Pytorch-UNet/pull/470",
    ),
    identity=wrong(
        r"Where $\lVert g \rVert \le c$, also for infinite $c$, nothing changes.",
        "The same within the bounds on the entries, for norms clear of $c$.",
        "changed inside the ball",
    ),
    zero_maximum=EXACT.fragile("With $c = 0$ all gradients become 0.", "division by zero"),
    no_gradients=CASE.fragile("An empty list, or one of empty tensors, has norm 0.", "reduction of nothing"),
    zero_gradients=CASE.fragile("Gradients that are all 0 have norm 0 and stay 0.", "division by zero"),
    not_finite=CASE.fragile("Where a gradient holds NaN or infinity, `total_norm` is not finite.", "hidden overflow"),
    range=numerics(
        "The formula has a value for gradients of any size.",
        "Gradients whose squares over- or underflow are clipped within their bounds; the norm of halves is a number of "
        "fp32.",
        "overflow",
    ),
    scale=POWERS_OF_TWO.wrong(
        r"Scaling gradients and $c$ by $s > 0$ scales the result and the norm.",
        "clipping in other units",
        "https://github.com/milesial/Pytorch-UNet/pull/470",
    ),
    duplicates=wrong(
        "A tensor that is listed twice counts twice: the list is what it is.",
        "The formula's value within its bound.",
        "list read as a set",
        "https://github.com/NVIDIA/Megatron-LM/pull/7227",
        kind=Kind.EQUATION,
    ),
    grouping=BOTH.wrong(
        "The norm is of all entries together, however they are spread over the list.",
        "norm per tensor",
        "https://github.com/areal-project/AReaL/issues/312",
    ),
    mixed_dtypes=wrong(
        "The tensors of the list may differ in dtype; each keeps its own.",
        "Values lie within the bound of the coarsest dtype of the list.",
        "changed dtype",
        kind=Kind.EQUATION,
    ),
    denominator=CLAIMED.wrong(
        "The gradients are divided by their norm, to which nothing is added.", "epsilon that is not in the formula"
    ),
)

_PRECEDENTS = (
    "https://github.com/huggingface/transformers/pull/35438",
    "https://github.com/modelscope/ms-swift/pull/10084",
)

# Documents 000 and 001, section 9.2.
ACCUMULATE_GRADIENTS = of("accumulate_gradients").standard(
    "contract equation refusals sensitivity",
    equation=(
        r"$\sum_k \nabla S_k / \sum_k n_k$ for every parameter: the gradient of the mean loss over all tokens at "
        "once.",
        *_PRECEDENTS,
        "https://github.com/catalyst-team/catalyst/issues/1319",
    ),
    refusals="What is no function for a loss, no parameters and no micro-batches are refused.",
    partition=wrong(
        "However the tokens are split into micro-batches, also in parts of different sizes and empty ones, the "
        "gradient is the same.",
        "Two splits of the same tokens differ by at most the sum of both bounds.",
        "gradient that depends on the split",
        *_PRECEDENTS,
    ),
    duplicates=BOTH.wrong(
        "All micro-batches given twice have the same mean loss, and so the same gradient.",
        "sum in place of a mean",
        *_PRECEDENTS,
    ),
    no_tokens=CASE.fragile(
        "Over no token, in empty micro-batches or in none, the gradients are 0.", "division by zero"
    ),
    unused_parameters=CASE.wrong("A parameter that the loss does not use has the gradient 0.", "missing gradient"),
    grad_untouched=CASE.leak("What parameters hold in `grad` is neither read nor written.", "gradients left behind"),
)

REQUIREMENTS = (*CLIP_GRAD_NORM, *ACCUMULATE_GRADIENTS)
