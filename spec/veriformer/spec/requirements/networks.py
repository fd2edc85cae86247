"""Requirements of two-layer networks: the MLP (equations 13 to 18) and the feed-forward network (36, 47)."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import families

_BACKPROPAGATION = (
    "https://github.com/rasbt/stat453-deep-learning-ss21/issues/5",
    "https://github.com/kvfrans/notes/issues/5",
)
_GRADIENT = (
    r"$\bar W_2 = h^T \bar y$, $\bar b_2 = \sum_i \bar y_i$; with $\delta = (\bar y W_2^T) \odot \sigma'(z)$ "
    r"$\bar W_1 = x^T \delta$, $\bar b_1 = \sum_i \delta_i$, $\bar x = \delta W_1^T$."
)
_REFUSED = "No tensor, weights and biases that do not fit one another, mixed dtypes and unknown activations are refused"


def _hidden_order(operation: str, equations: tuple[str, ...]) -> Requirement:
    return families.law(
        operation,
        "hidden_order",
        "Hidden units have no order: permuting them, in all weights alike, changes nothing.",
        "The same within the sum of both bounds.",
        "misaligned hidden units",
        equations=equations,
        weight=Weight.WRONG,
    )


def _range(operation: str, equations: tuple[str, ...]) -> Requirement:
    return families.law(
        operation,
        "range",
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        equations=equations,
        precedents=("https://github.com/huggingface/transformers/issues/5651",),
        weight=Weight.FRAGILE,
    )


def _limits(operation: str, equations: tuple[str, ...]) -> Requirement:
    return families.law(
        operation,
        "limits",
        "Far from zero an activation has reached its limit, and its slope is a constant.",
        "Result and gradients are finite, and within their bounds, for hidden values before the activation from 40 on.",
        "overflow far from zero",
        kind=Kind.NUMERICS,
        equations=equations,
        precedents=("https://github.com/PaddlePaddle/Paddle/pull/79760",),
        weight=Weight.FRAGILE,
    )


MLP = (
    families.contract("mlp", ("13", "14", "15")),
    families.equation(
        "mlp",
        ("13", "14", "15"),
        r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of relu, which is the default, sigmoid, tanh, gelu.",
    ),
    families.gradient("mlp", ("16", "17", "18"), _GRADIENT, _BACKPROPAGATION),
    families.purity("mlp"),
    families.layout("mlp"),
    families.long("mlp"),
    *families.refusals("mlp", f"{_REFUSED}."),
    families.batch("mlp", "Rows are independent: each can be computed alone."),
    families.sensitivity("mlp"),
    _hidden_order("mlp", ("13", "15")),
    families.law(
        "mlp",
        "homogeneous",
        r"Without biases, ReLU lets a positive factor pass: $y(s x) = s\, y(x)$ for $s > 0$.",
        "The same for powers of two, within the sum of both bounds.",
        "wrong activation",
        equations=("14", "15"),
        weight=Weight.WRONG,
    ),
    families.law(
        "mlp",
        "balance",
        r"$\langle W_1, \bar W_1 \rangle = \langle x, \bar x \rangle$, since the first layer sees their product alone; "
        r"$\langle W_2, \bar W_2 \rangle = \langle \bar y, y - b_2 \rangle$, since the result is linear in $W_2$.",
        "The same within what the bounds on result and gradients leave to the inner products.",
        "gradient that does not balance",
        equations=("16", "17", "18"),
        weight=Weight.WRONG,
    ),
    _range("mlp", ("13", "14", "15")),
    _limits("mlp", ("14", "17", "18")),
)

FEED_FORWARD = (
    families.contract("feed_forward", ("36",)),
    families.equation(
        "feed_forward",
        ("36",),
        r"$y = \sigma(x W_1 + b_1) W_2 + b_2$ with $\sigma$ one of gelu, which is the default, relu, sigmoid, tanh; "
        "without training nothing is dropped.",
        ("https://github.com/vllm-project/vllm/issues/3411",),
    ),
    families.gradient("feed_forward", ("36",), _GRADIENT, _BACKPROPAGATION),
    families.purity("feed_forward"),
    families.layout("feed_forward"),
    *families.refusals("feed_forward", f"{_REFUSED}, and so are probabilities outside [0, 1]."),
    families.batch("feed_forward", "Positions are independent: each can be computed alone."),
    families.sensitivity("feed_forward"),
    families.numpy_numbers("feed_forward"),
    families.long("feed_forward"),
    families.accuracy("feed_forward"),
    _hidden_order("feed_forward", ("36",)),
    _range("feed_forward", ("36",)),
    _limits("feed_forward", ("36",)),
    families.law(
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
