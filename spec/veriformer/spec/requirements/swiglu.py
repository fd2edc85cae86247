"""Requirements of SwiGLU (document 003, stage 6)."""

from veriformer.spec.requirements import templates

swiglu = templates.of("swiglu")

_SWAPPED = "https://github.com/ml-explore/mlx-lm/pull/767"

REQUIREMENTS = (
    *swiglu.standard(
        "contract equation gradient purity layout refusals batch sensitivity accuracy long",
        equation=(r"$y = (\mathrm{SiLU}(x W_{gate}) \odot x W_{up}) W_{down}$.", _SWAPPED),
        gradient=r"The product rule over the gate $a = \mathrm{SiLU}(x W_{gate})$ and what it lets through, "
        r"$u = x W_{up}$: $\bar u = (\bar y W_{down}^T) \odot a$ and $\bar a = (\bar y W_{down}^T) \odot u$.",
        refusals="No tensor, weights that do not fit one another, and mixed dtypes are refused.",
        batch="Rows are independent: each can be computed alone.",
    ),
    swiglu.wrong(
        "value_linear",
        "The result is linear in $W_{up}$, and not in $W_{gate}$.",
        "The results for two matrices add up to that for their sum, where the dtype holds it exactly, within the sum "
        "of all bounds.",
        "gate and value exchanged",
        _SWAPPED,
    ),
    swiglu.wrong(
        "hidden_order",
        "Hidden units have no order: permuting them, in all weights alike, changes nothing.",
        "The same within the sum of both bounds.",
        "misaligned hidden units",
    ),
    swiglu.numerics(
        "range",
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
    ),
    swiglu.numerics(
        "limits",
        "Far from zero the gate has reached its limit: its argument above, 0 below.",
        "Result and gradients are finite, and within their bounds, for gates from 40 on.",
        "overflow far from zero",
        "https://github.com/PaddlePaddle/Paddle/pull/79760",
    ),
)
