"""Features of layers: affine parameters, experts, dropout, embeddings."""

from __future__ import annotations

from collections.abc import Iterator

from veriformer.spec.operations import OPERATIONS
from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Named, fragile, ordinary


def of_layers(operation: str) -> Iterator[Feature]:
    """Yield the features of calls of layers: affine parameters, experts, dropout, repeated ids, widths."""
    record = OPERATIONS.get(operation)
    if record is not None and record.parameters:
        yield from ordinary(operation, *_affine())
        yield from fragile(operation, ("rows of one entry", lambda a: a["x"].shape[-1] == 1))
    if operation == "mixture_of_experts":
        yield from ordinary(operation, *_experts())
    if operation in ("dropout", "feed_forward"):
        yield from ordinary(operation, *_dropout(by_default=operation == "dropout"))
    if operation == "token_embedding":
        yield from ordinary(operation, ("repeated ids", lambda a: a["ids"].unique().numel() < a["ids"].numel()))
    if operation in ("mlp", "feed_forward", "swiglu"):
        yield from ordinary(operation, *_networks(operation))


def _affine() -> tuple[Named, ...]:
    def has(a: Arguments, name: str) -> bool:
        return a.get(name) is not None

    return (
        ("no weight", lambda a: not has(a, "weight")),
        ("a weight without bias", lambda a: has(a, "weight") and not has(a, "bias")),
        ("a bias without weight", lambda a: has(a, "bias") and not has(a, "weight")),
        ("rows as many as they are long", lambda a: a["x"].ndim > 1 and a["x"].shape[-1] == a["x"].shape[-2]),
    )


def _experts() -> tuple[Named, ...]:
    return (
        ("all experts chosen", lambda a: a.get("top_k", 2) == a["router"].shape[-1]),
        ("d_out ≠ d", lambda a: a["w2"].shape[-1] != a["x"].shape[-1]),
        ("repeated tokens", lambda a: a["x"].ndim > 1 and a["x"].flatten(0, -2).unique(dim=0).shape[0] < len(a["x"])),
    )


def _dropout(*, by_default: bool) -> tuple[Named, ...]:
    """Return features of dropout. by_default: whether ``training`` is true where it is left out."""

    def rate(a: Arguments) -> float:
        return float(a.get("p", a.get("dropout_p"))) if a.get("training", by_default) else 0.0

    return (
        ("a generator", lambda a: a["generator"] is not None),
        ("dropout in training", lambda a: rate(a) > 0),
        ("not training", lambda a: a["training"] is False),
        ("everything dropped", lambda a: rate(a) == 1),
    )


def _networks(operation: str) -> tuple[Named, ...]:
    last = "w_down" if operation == "swiglu" else "w2"
    return (("d_out ≠ d", lambda a: a[last].shape[-1] != a["x"].shape[-1]),)
