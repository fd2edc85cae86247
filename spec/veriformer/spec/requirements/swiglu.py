"""Requirements of SwiGLU (document 003, stage 6)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

_SWAPPED = ("https://github.com/ml-explore/mlx-lm/pull/767",)

REQUIREMENTS = (
    templates.contract("swiglu"),
    templates.equation(
        "swiglu",
        (),
        r"$y = (\mathrm{SiLU}(x W_{gate}) \odot x W_{up}) W_{down}$.",
        _SWAPPED,
    ),
    templates.gradient(
        "swiglu",
        (),
        r"The product rule over the gate $a = \mathrm{SiLU}(x W_{gate})$ and what it lets through, $u = x W_{up}$: "
        r"$\bar u = (\bar y W_{down}^T) \odot a$ and $\bar a = (\bar y W_{down}^T) \odot u$.",
    ),
    templates.purity("swiglu"),
    templates.layout("swiglu"),
    *templates.refusals("swiglu", "No tensor, weights that do not fit one another, and mixed dtypes are refused."),
    templates.batch("swiglu", "Rows are independent: each can be computed alone."),
    templates.sensitivity("swiglu"),
    templates.accuracy("swiglu"),
    templates.long("swiglu"),
    templates.law(
        "swiglu",
        "value_linear",
        "The result is linear in $W_{up}$, and not in $W_{gate}$.",
        "The results for two matrices add up to that for their sum, where the dtype holds it exactly, within the sum "
        "of all bounds.",
        "gate and value exchanged",
        precedents=_SWAPPED,
        weight=Weight.WRONG,
    ),
    templates.law(
        "swiglu",
        "hidden_order",
        "Hidden units have no order: permuting them, in all weights alike, changes nothing.",
        "The same within the sum of both bounds.",
        "misaligned hidden units",
        weight=Weight.WRONG,
    ),
    templates.law(
        "swiglu",
        "range",
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        weight=Weight.FRAGILE,
    ),
    templates.law(
        "swiglu",
        "limits",
        "Far from zero the gate has reached its limit: its argument above, 0 below.",
        "Result and gradients are finite, and within their bounds, for gates from 40 on.",
        "overflow far from zero",
        kind=Kind.NUMERICS,
        precedents=("https://github.com/PaddlePaddle/Paddle/pull/79760",),
        weight=Weight.FRAGILE,
    ),
)
