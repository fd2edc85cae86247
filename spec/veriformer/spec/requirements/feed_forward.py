"""Requirements of the feed-forward network (equations 36 and 47)."""

from veriformer.spec.requirements import templates
from veriformer.spec.requirements.two_layers import (
    BACKPROPAGATION,
    GRADIENT,
    REFUSED,
    hidden_order_law,
    limits_law,
    range_law,
)

feed_forward = templates.of("feed_forward", "36")

REQUIREMENTS = (
    *feed_forward.standard(
        "contract equation gradient purity layout refusals batch sensitivity numpy_numbers long accuracy",
        equation=(
            r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of gelu, which is the default, relu, sigmoid, "
            "tanh; without training nothing is dropped.",
            "https://github.com/vllm-project/vllm/issues/3411",
        ),
        gradient=(GRADIENT, *BACKPROPAGATION),
        refusals=f"{REFUSED}, and so are probabilities outside [0, 1].",
        batch="Positions are independent: each can be computed alone.",
    ),
    hidden_order_law(feed_forward),
    range_law(feed_forward),
    limits_law(feed_forward),
    feed_forward.wrong(
        "dropout",
        "In training hidden values are dropped, after the activation, each kept with probability $1 - p$ and divided "
        "by it; the gradients go through the same mask, and the biases of the output are never dropped.",
        "The mask is read from a result whose output layer is diagonal; under it result and gradients lie within the "
        "bounds of the formula. How many are kept, and how often neighbours fare alike, is within what chance allows, "
        "but for one run in 1e9; $p = 1$ keeps none.",
        "wrong dropout",
        equations=("47",),
    ),
)
