"""Requirements of the residual connection (equation 4)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("residual", ("4",)),
    templates.equation("residual", ("4",), r"$y = x + s F(x)$, given $F(x)$."),
    templates.gradient("residual", ("4",), r"$\bar x = \bar y$, untouched, and $\bar F = s \bar y$."),
    templates.purity("residual"),
    templates.layout("residual"),
    *templates.refusals("residual", "No tensor, shapes or dtypes that differ, and scales that are no number."),
    templates.sensitivity("residual"),
    templates.numpy_numbers("residual"),
    templates.long("residual"),
    templates.law(
        "residual",
        "identity",
        "Where the branch is zero, or its scale, the input passes as it is.",
        "The same bit for bit; with another branch the result is within its bound.",
        "changed identity",
        equations=("4",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "residual",
        "range",
        "The scaled branch may leave the range of a half where the sum is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        equations=("4",),
        precedents=("https://github.com/huggingface/transformers/pull/19229",),
        weight=Weight.FRAGILE,
    ),
)
