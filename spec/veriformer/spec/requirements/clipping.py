"""Requirements of clipping by the global norm (equation 11)."""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements import families

CLIP_GRAD_NORM = (
    families.contract("clip_grad_norm", ("11",)),
    families.equation(
        "clip_grad_norm",
        ("11",),
        r"$\tilde g = \min(1, c / \lVert g \rVert_2)\, g$ with the norm of all tensors of the list together, "
        "which is returned too.",
    ),
    families.purity("clip_grad_norm"),
    families.layout("clip_grad_norm"),
    *families.refusals(
        "clip_grad_norm", "No list, missing gradients, and a maximum that is negative or no number are refused."
    ),
    families.sensitivity("clip_grad_norm"),
    families.numpy_numbers("clip_grad_norm"),
    families.law(
        "clip_grad_norm",
        "direction",
        r"$\tilde g$ is a positive multiple of $g$.",
        r"$\tilde g - g \langle \tilde g, g \rangle / \lVert g \rVert^2$ is at most what the bounds on the entries "
        r"leave to it.",
        "changed direction",
        equations=("11",),
    ),
    families.law(
        "clip_grad_norm",
        "norm_bound",
        r"$\lVert \tilde g \rVert = \min(c, \lVert g \rVert)$.",
        "The same within the norm of the bounds on the entries.",
        "wrong length",
        equations=("11",),
        precedents=(
            "https://github.com/areal-project/AReaL/issues/312",
            "https://github.com/milesial/Pytorch-UNet/pull/470",
        ),
    ),
    families.law(
        "clip_grad_norm",
        "identity",
        r"Where $\lVert g \rVert \le c$, also for infinite $c$, nothing changes.",
        "The same bit for bit, for norms clear of $c$.",
        "changed inside the ball",
        equations=("11",),
    ),
    families.law(
        "clip_grad_norm",
        "zero_maximum",
        "With $c = 0$ all gradients become 0.",
        "The same exactly.",
        "division by zero",
        equations=("11",),
    ),
    families.contract_case(
        "clip_grad_norm",
        "no_gradients",
        "An empty list, or one of empty tensors, has norm 0.",
        "reduction of nothing",
        ("11",),
    ),
    families.contract_case(
        "clip_grad_norm",
        "zero_gradients",
        "Gradients that are all 0 have norm 0 and stay 0.",
        "division by zero",
        ("11",),
    ),
    families.contract_case(
        "clip_grad_norm",
        "not_finite",
        "Where a gradient holds NaN or infinity, `total_norm` is not finite.",
        "hidden overflow",
        ("11",),
    ),
    families.law(
        "clip_grad_norm",
        "range",
        "The formula has a value for gradients of any size.",
        "Gradients whose squares over- or underflow are clipped within their bounds; the norm of halves is a number "
        "of fp32.",
        "overflow",
        kind=Kind.NUMERICS,
        equations=("11",),
    ),
    families.law(
        "clip_grad_norm",
        "scale",
        r"Scaling gradients and $c$ by $s > 0$ scales the result and the norm.",
        "The same for powers of two, within the sum of both bounds.",
        "clipping in other units",
        equations=("11",),
        precedents=("https://github.com/milesial/Pytorch-UNet/pull/470",),
    ),
    families.law(
        "clip_grad_norm",
        "duplicates",
        "A tensor that is listed twice counts twice: the list is what it is.",
        "The formula's value within its bound.",
        "list read as a set",
        kind=Kind.EQUATION,
        equations=("11",),
        precedents=("https://github.com/NVIDIA/Megatron-LM/pull/7227",),
    ),
    families.law(
        "clip_grad_norm",
        "grouping",
        "The norm is of all entries together, however they are spread over the list.",
        "The same within the sum of both bounds.",
        "norm per tensor",
        equations=("11",),
        precedents=("https://github.com/areal-project/AReaL/issues/312",),
    ),
    families.law(
        "clip_grad_norm",
        "mixed_dtypes",
        "The tensors of the list may differ in dtype; each keeps its own.",
        "Values lie within the bound of the coarsest dtype of the list.",
        "changed dtype",
        kind=Kind.EQUATION,
        equations=("11",),
    ),
    families.convention(
        "clip_grad_norm",
        "denominator",
        "The gradients are divided by their norm, to which nothing is added.",
        "epsilon that is not in the formula",
        ("11",),
    ),
)
