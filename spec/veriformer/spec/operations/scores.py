"""Scores to decisions: losses, probabilities, and how well they are calibrated."""

from dataclasses import replace

from veriformer.spec.operations.call import (
    Axis,
    Choice,
    Floats,
    Integer,
    Integers,
    Mark,
    Number,
    Operation,
    Probability,
    Result,
)

_LOGITS = Floats("... V")
_CLASSES = Integers("...", below="V", floating=True)
_IGNORED = Mark(default=-100)

OPERATIONS = (
    Operation(
        name="softmax",
        says="Softmax along one axis: e^(z_i) / Σ_j e^(z_j) (1, 21, 25).",
        call={"z": Floats("... n"), "dim": Axis(default=-1)},
        result=Result("... n"),
        place="scores.softmax",
        grown={"n": ("n",)},
    ),
    Operation(
        name="logsumexp",
        says="log Σ_i e^(z_i) along one axis; −∞ over an empty one (12).",
        call={"z": Floats("... n"), "dim": Axis(default=-1)},
        result=Result("..."),
        place="scores.logsumexp",
        grown={"n": ("n",)},
    ),
    Operation(
        name="cross_entropy",
        says="Cross-entropy of class indices or probabilities; the mean is over targets not ignored (2, 38, 48).",
        call={"logits": _LOGITS, "target": replace(_CLASSES, probabilities=True)},
        options={
            "ignore_index": _IGNORED,
            "label_smoothing": Probability(default=0.0),
            "reduction": Choice(default="mean", others=("sum", "none")),
        },
        result=Result(""),
        place="scores.cross_entropy",
    ),
    Operation(
        name="perplexity",
        says="exp of the mean negative log-likelihood over all counted tokens (41).",
        call={"logits": _LOGITS, "target": _CLASSES},
        options={"ignore_index": _IGNORED},
        result=Result(""),
        place="scores.perplexity",
    ),
    Operation(
        name="smooth_labels",
        says="Label smoothing: class indices as probabilities (1 − α) · onehot + α / num_classes (48).",
        call={"target": _CLASSES, "num_classes": Integer(least=1), "alpha": Probability()},
        result=Result("... V"),
        place="layers.smooth_labels",
    ),
    Operation(
        name="temperature_scale",
        says="softmax(logits / temperature).",
        call={"logits": _LOGITS, "temperature": Number(least=0.0)},
        result=Result("... V"),
        place="generation.temperature_scale",
    ),
    Operation(
        name="expected_calibration_error",
        says="Expected calibration error over bins (lo, hi], of which the first also holds 0.",
        call={"probs": Floats("N V", constant=True), "target": Integers("N", below="V", floating=True)},
        options={"num_bins": Integer(default=15, least=1, usual=(15, 10, 20, 5, 100))},
        result=Result(""),
        place="generation.expected_calibration_error",
    ),
    Operation(
        name="masked_lm_loss",
        says="Masked language-model loss: the mean negative log-likelihood over the masked positions.",
        call={"logits": _LOGITS, "labels": Integers("...", below="V")},
        options={"ignore_index": _IGNORED},
        result=Result(""),
        place="language.masked_lm_loss",
    ),
)
