"""Requirements of the residual connection (equation 4)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import families

REQUIREMENTS = (
    families.contract("residual", ("4",)),
    families.equation("residual", ("4",), r"$y = x + s F(x)$, given $F(x)$."),
    families.gradient("residual", ("4",), r"$\bar x = \bar y$, untouched, and $\bar F = s \bar y$."),
    families.purity("residual"),
    families.layout("residual"),
    *families.refusals("residual", "No tensor, shapes or dtypes that differ, and scales that are no number."),
    families.sensitivity("residual"),
    families.numpy_numbers("residual"),
    families.long("residual"),
    families.law(
        "residual",
        "identity",
        "Where the branch is zero, or its scale, the input passes as it is.",
        "The same bit for bit; with another branch the result is within its bound.",
        "changed identity",
        equations=("4",),
        weight=Weight.WRONG,
    ),
    families.law(
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
