"""Keys of the ``CLAIMS`` dict, and the conventions that it may name, in which correct implementations differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from veriformer.spec.suggestion import meant, some
from veriformer.verify.targets.error import TargetError

KEYS: Mapping[str, str] = {
    "dtypes": 'Formats in which results are promised: a list (`["fp32", "bf16"]`), or by operation a list, '
    'with `"*"` for all others. In any other format nothing is judged.',
    "devices": 'Devices on which results are promised: a list (`["cuda"]`).',
    "not_provided": "By operation, by `operation.argument` or by `operation.gradient`, the reason why it is "
    'left out: it is not judged (`{"attention.gradient": "inference only"}`).',
    "provides": "By operation, features that are provided whatever the probe finds: calls that have them are "
    "judged, and a refusal is a failure.",
    "conventions": "By convention, the choice that is followed. It is checked as claimed, and shown as a "
    'deviation where the contract has another (`{"rope.pairing": "half"}`). An optional '
    'argument that a signature hides is claimed likewise (`{"rms_norm.eps": 1e-5}`), and so is'
    ' how recognised code is called (`{"attention.mask": "inverted"}`).',
}
"""Keys of ``CLAIMS``, each with its meaning."""


def check_keys(claims: object) -> None:
    """Raise TargetError for a key of ``CLAIMS`` that means nothing: what it claims would count for nothing."""
    for key in claims if isinstance(claims, Mapping) else ():
        inside = f"; a convention stands inside: {{'conventions': {{{key!r}: …}}}}" if "." in str(key) else ""
        check_key("CLAIMS", key, KEYS, inside)


def check_key(where: str, key: object, known: Iterable[str], advice: str = "") -> None:
    """Raise TargetError unless a key is known there, with the known keys that come close."""
    known = list(known)
    if key not in known:
        word = str(key)
        raise TargetError(f"{where}[{word!r}]: unknown key{meant(word, known)} (known keys: {some(known)}){advice}")


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
