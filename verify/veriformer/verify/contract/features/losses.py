"""Features of losses and functions of scores: targets, classes, ties."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Condition, Named, demanded, fragile, ordinary

_TARGETS = {"cross_entropy": "target", "perplexity": "target", "masked_lm_loss": "labels"}
_FILTERS = ("top_k_filter", "top_p_filter", "greedy")

COLD = 0.01
"""Temperature below which every choice is certain; nobody samples at one."""


def of_losses(operation: str) -> Iterator[Feature]:
    """Yield the features of targets by class and by probability, ignored ones, classes, and the axis of a softmax."""
    if operation in _TARGETS:
        yield from ordinary(operation, *_targets(_TARGETS[operation]))
        yield from fragile(operation, *_degenerate(_TARGETS[operation]))
    if operation in ("softmax", "logsumexp"):
        yield from ordinary(operation, *_axes())
    if operation in _FILTERS:
        yield from ordinary(operation, ("all of the classes kept", lambda a: a["k"] == a["logits"].shape[-1]))
    if operation == "expected_calibration_error":
        yield from demanded(operation, ("a confidence on the edge of a bin", _on_edge), ("a confidence of 1", _certain))
        yield from fragile(operation, ("a confidence of 0", lambda a: bool((a["probs"].amax(-1) == 0).any())))
        yield from ordinary(operation, ("a bin without samples", lambda a: a["num_bins"] > a["target"].numel()))
    if operation == "temperature_scale":
        yield from fragile(operation, ("a temperature near 0", lambda a: a["temperature"] < COLD))
    if operation == "smooth_labels":
        yield from ordinary(operation, ("one class", lambda a: a["num_classes"] == 1))


def _certain(a: Arguments) -> bool:
    return bool((a["probs"] == 1).any())


def _on_edge(a: Arguments) -> bool:
    """Return whether some sample's confidence is a multiple of the bin width, 0 and 1 among them."""
    place = a["probs"].double().max(-1).values * a.get("num_bins", 15)
    return bool((place == place.round()).any())


def ignored_targets(a: Arguments, name: str) -> torch.Tensor:
    """Return the mask of targets that equal ``ignore_index``."""
    return torch.as_tensor(a[name] == a.get("ignore_index", -100))


def _targets(name: str) -> tuple[Named, ...]:
    return (
        ("probability targets", lambda a: a[name].is_floating_point()),
        ("class targets", lambda a: not a[name].is_floating_point()),
        ("ignored targets", lambda a: not a[name].is_floating_point() and bool(ignored_targets(a, name).any())),
        ("an ignore_index that is a class", lambda a: 0 <= a["ignore_index"] < a["logits"].shape[-1]),
        ("label smoothing", lambda a: a["label_smoothing"] > 0),
        (
            "label smoothing and ignored targets",
            lambda a: a["label_smoothing"] > 0 and bool(ignored_targets(a, name).any()),
        ),
        ("more than 128 classes", lambda a: a["logits"].shape[-1] > 128),
        ("targets of several axes", lambda a: a["logits"].ndim > 2),
    )


def _of_another_dtype(name: str) -> Condition:
    return lambda a: a[name].is_floating_point() and a[name].dtype is not a["logits"].dtype


def _degenerate(name: str) -> tuple[Named, ...]:
    return (
        ("probability targets of another dtype", _of_another_dtype(name)),
        ("an ignore_index above all classes", lambda a: a["ignore_index"] >= a["logits"].shape[-1]),
        ("a 0-dimensional target", lambda a: a["logits"].ndim == 1),
        ("no targets", lambda a: a[name].numel() == 0),
        ("only ignored targets", lambda a: a[name].numel() > 0 and bool(ignored_targets(a, name).all())),
        ("one class", lambda a: a["logits"].shape[-1] == 1),
        ("label smoothing of 1", lambda a: a["label_smoothing"] == 1),
        ("-inf in the logits", lambda a: bool(a["logits"].isneginf().any())),
    )


def _axes() -> tuple[Named, ...]:
    return (
        ("another axis than the last", lambda a: a["dim"] % a["z"].ndim != a["z"].ndim - 1),
        ("a dim counted from the front", lambda a: a["dim"] >= 0),
        ("the first axis of several", lambda a: a["z"].ndim > 1 and a["dim"] % a["z"].ndim == 0),
        ("a middle axis", lambda a: 0 < a["dim"] % a["z"].ndim < a["z"].ndim - 1),
    )
