"""Requirements of the residual connection (equation 4)."""

from veriformer.spec.requirements import templates

residual = templates.of("residual", "4")

REQUIREMENTS = (
    *residual.standard(
        "contract equation gradient purity layout refusals sensitivity numpy_numbers long",
        equation=r"$y = x + s F(x)$, given $F(x)$.",
        gradient=r"$\bar x = \bar y$, untouched, and $\bar F = s \bar y$.",
        refusals="No tensor, shapes or dtypes that differ, and scales that are no number.",
    ),
    residual.wrong(
        "identity",
        "Where the branch is zero, or its scale, the input passes as it is.",
        "The same bit for bit; with another branch the result is within its bound.",
        "changed identity",
    ),
    residual.numerics(
        "range",
        "The scaled branch may leave the range of a half where the sum is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        "https://github.com/huggingface/transformers/pull/19229",
    ),
)
