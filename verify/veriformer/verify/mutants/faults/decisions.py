"""Faults of smoothing, temperature, calibration and the masked objective."""

from __future__ import annotations

from veriformer.verify.mutants.combinators import Fault, edited
from veriformer.verify.mutants.faults.scores import NAN_OF_NOTHING, OVER_ALL_POSITIONS

FAULTS: dict[str, dict[str, Fault]] = {
    "LS-02": {"smooth_labels": edited("smooth_labels", ("share = xp.asarray(alpha)", "share = xp.asarray(1)"))},
    "SM-02": {
        "temperature_scale": edited(
            "temperature_scale",
            ("(logits - xp.max(logits, axis=-1, keepdims=True)) / temperature", "logits / temperature"),
            dtype=None,
        )
    },
    "CE-01": {"masked_lm_loss": edited("masked_lm_loss", NAN_OF_NOTHING)},
    "CE-02": {"masked_lm_loss": edited("masked_lm_loss", OVER_ALL_POSITIONS)},
    # Bins closed below, so that 1 falls into one more.
    "CAL-01": {
        "expected_calibration_error": edited(
            "expected_calibration_error",
            ("np.arange(1, num_bins) / num_bins", "np.arange(1, num_bins + 1) / num_bins"),
            ("inner < exact_values", "inner <= exact_values"),
            ("== np.arange(num_bins)", "== np.arange(num_bins + 1)"),
        )
    },
    # The centre of a bin stands for its confidence.
    "CAL-04": {
        "expected_calibration_error": edited(
            "expected_calibration_error",
            (
                "astype(np.float64) - confidence",
                "astype(np.float64) - xp.asarray((_bins(xp, confidence, num_bins) + 0.5) / num_bins)",
            ),
        )
    },
}
