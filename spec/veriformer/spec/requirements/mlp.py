"""Requirements of the MLP (equations 13 to 18)."""

from veriformer.spec.requirements import templates
from veriformer.spec.requirements.two_layers import (
    BACKPROPAGATION,
    GRADIENT,
    REFUSED,
    hidden_order_law,
    limits_law,
    range_law,
)

mlp = templates.of("mlp", "13", "14", "15")

REQUIREMENTS = (
    *mlp.standard(
        "contract equation",
        equation=r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of relu, which is the default, sigmoid, tanh, "
        "gelu.",
    ),
    mlp.gradient(GRADIENT, *BACKPROPAGATION, equations=("16", "17", "18")),
    *mlp.standard(
        "purity layout long refusals batch sensitivity",
        refusals=f"{REFUSED}.",
        batch="Rows are independent: each can be computed alone.",
    ),
    hidden_order_law(mlp, equations=("13", "15")),
    mlp.wrong(
        "homogeneous",
        r"Without biases, ReLU lets a positive factor pass: $y(s x) = s\, y(x)$ for $s > 0$.",
        "The same for powers of two, within the sum of both bounds.",
        "wrong activation",
        equations=("14", "15"),
    ),
    mlp.wrong(
        "balance",
        r"$\langle W_1, \bar W_1 \rangle = \langle x, \bar x \rangle$, since the first layer sees their product alone; "
        r"$\langle W_2, \bar W_2 \rangle = \langle \bar y, y - b_2 \rangle$, since the result is linear in $W_2$.",
        "The same within what the bounds on result and gradients leave to the inner products.",
        "gradient that does not balance",
        equations=("16", "17", "18"),
    ),
    range_law(mlp),
    limits_law(mlp, equations=("14", "17", "18")),
)
