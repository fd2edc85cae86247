"""Requirements that the MLP and the feed-forward network share: laws, the gradient, refused arguments."""

from veriformer.spec.requirement import Requirement
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


def hidden_order_law(of: templates.Templates, equations: tuple[str, ...] | None = None) -> Requirement:
    """Hidden units may stand in any order."""
    return of.wrong(
        "hidden_order",
        "Hidden units have no order: permuting them, in all weights alike, changes nothing.",
        "The same within the sum of both bounds.",
        "misaligned hidden units",
        equations=equations,
    )


def range_law(of: templates.Templates) -> Requirement:
    """Hidden values may leave the range of a half."""
    return of.numerics(
        "range",
        "Hidden values beyond the range of a half do no harm where the result is within it.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
        "https://github.com/huggingface/transformers/issues/5651",
    )


def limits_law(of: templates.Templates, equations: tuple[str, ...] | None = None) -> Requirement:
    """Activations far from zero are at their limits."""
    return of.numerics(
        "limits",
        "Far from zero an activation has reached its limit, and its slope is a constant.",
        "Result and gradients are finite, and within their bounds, for hidden values before the activation from 40 on.",
        "overflow far from zero",
        "https://github.com/PaddlePaddle/Paddle/pull/79760",
        equations=equations,
    )
