"""Conventions in which correct implementations differ, and which a target may claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Convention:
    """Documented choice. values: those that may be claimed, the contract's own first."""

    values: tuple[str, ...]
    meaning: str


CONVENTIONS: Mapping[str, Convention] = {
    "attention.empty_row": Convention(
        ("zero", "nan", "uniform"),
        "Output of a query that may see no key: zeros, NaN (a softmax over −∞ alone), or the mean of all values.",
    ),
    "causal.alignment": Convention(
        ("bottom-right", "top-left"),
        "Keys that query i may see: j ≤ i + n_k − n_q (bottom-right) or j ≤ i (top-left).",
    ),
    "causal_lm.packing": Convention(
        ("documents", "position_ids"),
        "How a model is told of several documents in one row: by an argument of its own, or by `position_ids` that "
        "start again at 0.",
    ),
    "causal_lm.positions": Convention(
        ("mask", "caller"),
        "Who counts the positions of a padded row: the model, from the attention mask, or its caller.",
    ),
    "choice.ties": Convention(
        ("lower", "unspecified"), "Which of equal scores is chosen: that of the lower index, or any."
    ),
    "clip_grad_norm.denominator": Convention(
        ("norm", "norm+1e-6", "norm+1e-6 beyond max_norm"),
        "What gradients are divided by: their norm, or their norm plus 1e-6, as PyTorch does; or that only where their "
        "norm is larger than the maximum, up to which they are left as they are.",
    ),
    "cross_entropy.no_target": Convention(
        ("zero", "nan"), "The mean over targets of which all are ignored: 0, or 0/0 = NaN."
    ),
    "layer_norm.variance": Convention(
        ("two-pass", "one-pass"),
        "How the variance is computed: as the mean of (x − mean)², or as the mean of x² less the squared mean, which "
        "loses digits where the mean is large.",
    ),
    "adam.eps": Convention(
        ("outside", "hat", "inside"),
        "Denominator of a step, with v̂ = v/(1 − β₂ᵗ): √v̂ + ε (outside), (√v + ε)/√(1 − β₂ᵗ) (hat), or √(v̂ + ε) "
        "(inside).",
    ),
    "adamw.decay": Convention(
        ("before", "after"),
        "Parameter that decoupled decay shrinks: that before the step, (1 − ηλ) θ − η u (before), or that after it, "
        "(1 − ηλ) (θ − η u) (after).",
    ),
    "mixture_of_experts.experts": Convention(
        ("GELU", "SwiGLU"),
        "Experts of a mixture: two layers with biases and GELU, or SwiGLU without biases, whose w1 has the gate before "
        "the value.",
    ),
    "mixture_of_experts.gates": Convention(
        ("renormalised", "of all"),
        "Gates of the chosen experts: the softmax over them alone, or their part of that over all.",
    ),
    "rope.pairing": Convention(
        ("interleaved", "half"), "Which features are rotated together: 2i and 2i + 1, or i and i + d/2."
    ),
    "sgd.first_velocity": Convention(
        ("damped", "gradient"), "Velocity after the first step: (1 − β) · gradient, or the gradient, as in PyTorch."
    ),
    "sgd.gradient_weight": Convention(
        ("1-beta", "1"), "Weight of a gradient that is added to the velocity: 1 − β (an average), or 1 (a sum)."
    ),
    "warmup.first_step": Convention(("zero", "one"), "Number of the first step, to which the rate is proportional."),
}
"""By key of ``CLAIMS["conventions"]``."""
