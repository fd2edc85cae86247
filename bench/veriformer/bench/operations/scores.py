"""Calls of what turns scores into decisions, and decisions into text: N rows of d logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.bench.operations.family import Call, Costs, Family, Operation, Sizes, classes, on, random, substituted
from veriformer.spec import costs
from veriformer.spec.generation import costs_generation as generation
from veriformer.spec.layers.costs_layers import elementwise

_BINS, _KEPT = 10, 5


def _with(known: dict[str, Callable[[], Any]], **sizes: int) -> dict[str, Callable[[], Any]]:
    return {name: substituted(cost, **sizes) for name, cost in known.items()}


def rowwise(operation: str) -> Costs:
    """Return the specification's costs of an operation on rows."""
    return named(costs.lazily(operation))


def named(known: dict[str, Callable[[], Any]]) -> Costs:
    """The specification's costs by their names."""
    moved = known.get("bytes") or known.get("bytes at least")
    return Costs(
        flops=known.get("FLOPs"),
        total=(lambda: known["FLOPs"]() + known["backward FLOPs"]())
        if "backward FLOPs" in known
        else known.get("FLOPs"),
        moved=moved,
        others=known.get("other operations"),
        extra=known.get("peak extra bytes"),
        kept=known.get("bytes of state"),
        parameters=known.get("parameters"),
    )


def _with_classes(operation: Operation, s: Sizes) -> Call:
    logits, target = random(s["N"], s["d"]), classes(s["N"], below=s["d"])
    return Call(lambda: operation(logits, target), [logits, target])


def _masked(operation: Operation, s: Sizes) -> Call:
    logits, target = random(1, s["N"], s["d"]), classes(1, s["N"], below=s["d"])
    return Call(lambda: operation(logits, target), [logits, target])


def _smoothing(operation: Operation, s: Sizes) -> Call:
    target = classes(s["N"], below=s["d"])
    return Call(lambda: operation(target, s["d"], 0.1), [target], gradients=False)


def _calibration(operation: Operation, s: Sizes) -> Call:
    probs, target = random(s["N"], s["d"]).softmax(-1), classes(s["N"], below=s["d"])
    return Call(lambda: operation(probs, target, num_bins=_BINS), [probs, target], gradients=False)


def _chosen(*options: object) -> Callable[[Operation, Sizes], Call]:
    def call(operation: Operation, s: Sizes) -> Call:
        logits = random(s["N"], s["d"])
        return Call(lambda: operation(logits, *options), [logits], gradients=False)

    return call


FAMILIES = (
    Family("softmax", "N d", on("N d"), rowwise("softmax")),
    Family("logsumexp", "N d", on("N d"), rowwise("logsumexp")),
    Family("cross_entropy", "N d", _with_classes, rowwise("cross_entropy")),
    Family("perplexity", "N d", _with_classes, rowwise("perplexity")),
    Family("smooth_labels", "N d", _smoothing, named(elementwise(2, arrays=1))),
    Family("temperature_scale", "N d", _chosen(0.7), named(generation.temperature_costs())),
    Family("expected_calibration_error", "N d", _calibration, named(_with(generation.CALIBRATION, M=_BINS))),
    Family("masked_lm_loss", "N d", _masked, rowwise("cross_entropy")),
    Family("top_k_filter", "N d", _chosen(_KEPT), named(_with(generation.TOP_K, k=_KEPT))),
    Family("top_p_filter", "N d", _chosen(0.9), named(generation.TOP_P)),
    Family("greedy", "N d", _chosen(), named(generation.GREEDY)),
)
