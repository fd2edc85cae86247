"""Requirements of the MLP (equations 13 to 18)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates
from veriformer.spec.requirements.two_layers import (
    BACKPROPAGATION,
    GRADIENT,
    REFUSED,
    hidden_order_law,
    limits_law,
    range_law,
)

REQUIREMENTS = (
    templates.contract("mlp", ("13", "14", "15")),
    templates.equation(
        "mlp",
        ("13", "14", "15"),
        r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of relu, which is the default, sigmoid, tanh, gelu.",
    ),
    templates.gradient("mlp", ("16", "17", "18"), GRADIENT, BACKPROPAGATION),
    templates.purity("mlp"),
    templates.layout("mlp"),
    templates.long("mlp"),
    *templates.refusals("mlp", f"{REFUSED}."),
    templates.batch("mlp", "Rows are independent: each can be computed alone."),
    templates.sensitivity("mlp"),
    hidden_order_law("mlp", ("13", "15")),
    templates.law(
        "mlp",
        "homogeneous",
        r"Without biases, ReLU lets a positive factor pass: $y(s x) = s\, y(x)$ for $s > 0$.",
        "The same for powers of two, within the sum of both bounds.",
        "wrong activation",
        equations=("14", "15"),
        weight=Weight.WRONG,
    ),
    templates.law(
        "mlp",
        "balance",
        r"$\langle W_1, \bar W_1 \rangle = \langle x, \bar x \rangle$, since the first layer sees their product alone; "
        r"$\langle W_2, \bar W_2 \rangle = \langle \bar y, y - b_2 \rangle$, since the result is linear in $W_2$.",
        "The same within what the bounds on result and gradients leave to the inner products.",
        "gradient that does not balance",
        equations=("16", "17", "18"),
        weight=Weight.WRONG,
    ),
    range_law("mlp", ("13", "14", "15")),
    limits_law("mlp", ("14", "17", "18")),
)
