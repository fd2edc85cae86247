"""Requirements on an implementation, operation by operation, as records.

``REQUIREMENTS`` lists all of them, prerequisites before what rests on them; ``requirement(slug)`` finds one.
"""

from functools import cache
from importlib import import_module

from veriformer.spec.requirement import Requirement

# Each of these modules holds a tuple REQUIREMENTS; what rests on another comes after it.
_MODULES = (
    "softmax",
    "logsumexp",
    "cross_entropy",
    "perplexity",
    "smooth_labels",
    "temperature_scale",
    "expected_calibration_error",
    "masked_lm_loss",
    "mse_loss",
    "mlp",
    "layer_norm",
    "rms_norm",
    "residual",
    "activations",
    "feed_forward",
    "swiglu",
    "mixture_of_experts",
    "dropout",
    "xavier_normal",
    "token_embedding",
    "lm_head",
    "optimizers",
    "any_optimizer",
    "lr_scheduler",
    "schedules",
    "clip_grad_norm",
    "accumulate_gradients",
    "causal_mask",
    "attention",
    "multi_head_attention",
    "linear_attention",
    "caches",
    "transformer_block",
    "sinusoidal_encoding",
    "rope",
    "alibi",
    "t5_relative_position_bucket",
    "filters",
    "beam_search",
    "bpe",
    "unigram_segment",
    "models",
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(
    found for name in _MODULES for found in import_module(f"{__name__}.{name}").REQUIREMENTS
)
"""Every requirement, in the order of the contract."""


@cache
def _by_slug() -> dict[str, Requirement]:
    return {requirement.slug: requirement for requirement in REQUIREMENTS}


def requirement(slug: str) -> Requirement:
    """The requirement of that slug. Raises KeyError that names the slug where there is none."""
    return _by_slug()[slug]


__all__ = ["REQUIREMENTS", "Requirement", "requirement"]
