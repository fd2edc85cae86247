"""Requirements of the feed-forward network (equations 36 and 47)."""

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
    templates.contract("feed_forward", ("36",)),
    templates.equation(
        "feed_forward",
        ("36",),
        r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of gelu, which is the default, relu, sigmoid, tanh; "
        "without training nothing is dropped.",
        ("https://github.com/vllm-project/vllm/issues/3411",),
    ),
    templates.gradient("feed_forward", ("36",), GRADIENT, BACKPROPAGATION),
    templates.purity("feed_forward"),
    templates.layout("feed_forward"),
    *templates.refusals("feed_forward", f"{REFUSED}, and so are probabilities outside [0, 1]."),
    templates.batch("feed_forward", "Positions are independent: each can be computed alone."),
    templates.sensitivity("feed_forward"),
    templates.numpy_numbers("feed_forward"),
    templates.long("feed_forward"),
    templates.accuracy("feed_forward"),
    hidden_order_law("feed_forward", ("36",)),
    range_law("feed_forward", ("36",)),
    limits_law("feed_forward", ("36",)),
    templates.law(
        "feed_forward",
        "dropout",
        r"In training hidden values are dropped, after the activation, each kept with probability $1 - p$ and divided "
        "by it; the gradients go through the same mask, and the biases of the output are never dropped.",
        "The mask is read from a result whose output layer is diagonal; under it result and gradients lie within the "
        "bounds of the formula. How many are kept, and how often neighbours fare alike, is within what chance allows, "
        "but for one run in 1e9; $p = 1$ keeps none.",
        "wrong dropout",
        equations=("47",),
        weight=Weight.WRONG,
    ),
)
