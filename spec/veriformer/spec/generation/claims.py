"""What the documents say of temperature, calibration and decoding, line by line, and what decides it."""

from __future__ import annotations

from veriformer.spec.claim import claims

_MODELS = "a statement on trained models and their texts: it depends on a measure of quality that is not given"
_PRACTICE = "a description of practice, which nothing derived could contradict"

_DECIDED = (
    ("000", "11.2", 391, "ECE measures how well probabilities match outcomes", "calibration-error:errors-cancel"),
    ("000", "11.2", 393, "ECE = Σ |B_m|/n |acc − conf|", "calibration-error:formula"),
    ("000", "11.2", 399, "P_cal = softmax(z/T)", "temperature:formula"),
    ("000", "11.2", 401, "T > 1 is less confident, T < 1 more", "temperature:confidence"),
    ("000", "14.4", 472, "τ > 1 is smoother, τ < 1 sharper", "temperature:entropy"),
    ("001", "11.2", 505, "ECE measures how well probabilities match outcomes", "calibration-error:errors-cancel"),
    ("001", "11.2", 509, "ECE = Σ |B_m|/n |acc − conf|", "calibration-error:formula"),
    ("001", "11.2", 528, "P_cal = softmax(z/T)", "temperature:formula"),
    ("001", "11.2", 537, "T > 1 is less confident", "temperature:confidence"),
    ("001", "11.2", 538, "T < 1 is more confident", "temperature:confidence"),
    ("001", "14.4", 638, "τ > 1 is smoother, τ < 1 sharper", "temperature:entropy"),
    ("003", "9", 907, "√d_k is a temperature", "temperature:formula"),
    ("003", "12", 1388, "higher temperatures increase randomness", "temperature:entropy"),
    ("003", "12", 1401, "softmax gives a distribution", "softmax:sums-to-one"),
    ("003", "12, Mathematical Formulation", 1452, "p_i = exp(z_i/τ) / Σ exp(z_j/τ)", "temperature:formula"),
    ("003", "12, Mathematical Formulation", 1465, "τ → 0 is deterministic", "temperature:ties-stay-random"),
    ("003", "12, Mathematical Formulation", 1467, "τ → ∞ is uniform", "temperature:hot"),
    ("003", "12, Mathematical Formulation", 1478, "greedy takes arg max p_i", "greedy:top-one"),
    ("003", "12, Mathematical Formulation", 1489, "top-k samples from the k most probable", "top-k:formula"),
    ("003", "12, Mathematical Formulation", 1493, "their probabilities are renormalised", "top-k:renormalised"),
    (
        "003",
        "12, Mathematical Formulation",
        1506,
        "the nucleus has a mass of at most p",
        "top-p:reaches-not-stays-below",
    ),
    ("003", "12, Mathematical Formulation", 1510, "the nucleus is the smallest set that reaches p", "top-p:smallest"),
    ("003", "12, Mathematical Formulation", 1511, "its size adapts to the distribution", "top-p:most-probable"),
    ("003", "12, Mathematical Formulation", 1516, "p is at least the mass", "top-p:reaches-not-stays-below"),
    ("003", "12, Mathematical Formulation", 1521, "beam search keeps the b best", "beam-search:exhaustive"),
)

_UNDECIDED = (
    ("003", "12, Mathematical Formulation", 1468, "τ can be tuned to a desired confidence", _PRACTICE),
    ("003", "12, Mathematical Formulation", 1483, "greedy text is often repetitive", _MODELS),
    ("003", "12, Mathematical Formulation", 1494, "top-k balances diversity and quality", _MODELS),
    ("003", "12, Mathematical Formulation", 1517, "p is typically 0.9 to 0.95", _PRACTICE),
    ("003", "12, Mathematical Formulation", 1521, "beam search generates high quality", _MODELS),
)

CLAIMS = claims(_DECIDED, _UNDECIDED)
