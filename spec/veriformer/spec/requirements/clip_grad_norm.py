"""Requirements of clipping by the global norm (equation 11)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

clip_grad_norm = templates.of("clip_grad_norm", "11")

REQUIREMENTS = (
    *clip_grad_norm.standard(
        "contract result_dtype equation purity layout refusals sensitivity numpy_numbers accuracy",
        equation=r"$\tilde g = \min(1, c / \lVert g \rVert_2)\, g$ with the norm of all tensors of the list together, "
        "which is returned too.",
        refusals="No list, missing gradients, and a maximum that is negative or no number are refused.",
    ),
    clip_grad_norm.wrong(
        "direction",
        r"$\tilde g$ is a positive multiple of $g$.",
        r"$\tilde g - g \langle \tilde g, g \rangle / \lVert g \rVert^2$ is at most what the bounds on the entries "
        "leave to it.",
        "changed direction",
    ),
    clip_grad_norm.wrong(
        "norm_bound",
        r"$\lVert \tilde g \rVert = \min(c, \lVert g \rVert)$.",
        "The same within the norm of the bounds on the entries.",
        "wrong length",
        "https://github.com/areal-project/AReaL/issues/312",
        "https://github.com/milesial/Pytorch-UNet/pull/470",
    ),
    clip_grad_norm.wrong(
        "identity",
        r"Where $\lVert g \rVert \le c$, also for infinite $c$, nothing changes.",
        "The same within the bounds on the entries, for norms clear of $c$.",
        "changed inside the ball",
    ),
    clip_grad_norm.fragile(
        "zero_maximum", "With $c = 0$ all gradients become 0.", "The same exactly.", "division by zero"
    ),
    clip_grad_norm.contract_case(
        "no_gradients",
        "An empty list, or one of empty tensors, has norm 0.",
        "reduction of nothing",
        weight=Weight.FRAGILE,
    ),
    clip_grad_norm.contract_case(
        "zero_gradients", "Gradients that are all 0 have norm 0 and stay 0.", "division by zero", weight=Weight.FRAGILE
    ),
    clip_grad_norm.contract_case(
        "not_finite",
        "Where a gradient holds NaN or infinity, `total_norm` is not finite.",
        "hidden overflow",
        weight=Weight.FRAGILE,
    ),
    clip_grad_norm.numerics(
        "range",
        "The formula has a value for gradients of any size.",
        "Gradients whose squares over- or underflow are clipped within their bounds; the norm of halves is a number of "
        "fp32.",
        "overflow",
    ),
    clip_grad_norm.wrong(
        "scale",
        r"Scaling gradients and $c$ by $s > 0$ scales the result and the norm.",
        "The same for powers of two, within the sum of both bounds.",
        "clipping in other units",
        "https://github.com/milesial/Pytorch-UNet/pull/470",
    ),
    clip_grad_norm.wrong(
        "duplicates",
        "A tensor that is listed twice counts twice: the list is what it is.",
        "The formula's value within its bound.",
        "list read as a set",
        "https://github.com/NVIDIA/Megatron-LM/pull/7227",
        kind=Kind.EQUATION,
    ),
    clip_grad_norm.wrong(
        "grouping",
        "The norm is of all entries together, however they are spread over the list.",
        "The same within the sum of both bounds.",
        "norm per tensor",
        "https://github.com/areal-project/AReaL/issues/312",
    ),
    clip_grad_norm.wrong(
        "mixed_dtypes",
        "The tensors of the list may differ in dtype; each keeps its own.",
        "Values lie within the bound of the coarsest dtype of the list.",
        "changed dtype",
        kind=Kind.EQUATION,
    ),
    clip_grad_norm.convention(
        "denominator",
        "The gradients are divided by their norm, to which nothing is added.",
        "epsilon that is not in the formula",
        weight=Weight.WRONG,
    ),
)
