"""Requirements that the MLP and the feed-forward network share: laws, the gradient, refused arguments."""

from veriformer.spec.requirement import Kind, Requirement, Weight
from veriformer.spec.requirements import templates

BACKPROPAGATION = (
    "https://github.com/rasbt/stat453-deep-learning-ss21/issues/5",
    "https://github.com/kvfrans/notes/issues/5",
)
GRADIENT = (
    r"$\bar W_2 = h^T \bar y$, $\bar b_2 = \sum_i \bar y_i$; with $\delta = (\bar y W_2^T) \odot \sigma'(z)$ "
    r"$\bar W_1 = x^T \delta$, $\bar b_1 = \sum_i \delta_i$, $\bar x = \delta W_1^T$."
)
REFUSED = "No tensor, weights and biases that do not fit one another, mixed dtypes and unknown activations are refused"


def hidden_order_law(operation: str, equations: tuple[str, ...]) -> Requirement:
    """Hidden units may stand in any order."""
    return templates.law(
        operation,
        "hidden_order",
        "Hidden units have no order: permuting them, in all weights alike, changes nothing.",
        "The same within the sum of both bounds.",
        "misaligned hidden units",
        equations=equations,
        weight=Weight.WRONG,
    )


def range_law(operation: str, equations: tuple[str, ...]) -> Requirement:
    """Hidden values may leave the range of a half."""
    return templates.law(
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


def limits_law(operation: str, equations: tuple[str, ...]) -> Requirement:
    """Activations far from zero are at their limits."""
    return templates.law(
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
