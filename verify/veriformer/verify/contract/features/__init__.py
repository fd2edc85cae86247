"""Features of calls of every operation: the vocabulary of domains and of the conditions in findings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from veriformer.spec.requirement import Weight
from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.attention import of_attention
from veriformer.verify.contract.features.generation import of_generation
from veriformer.verify.contract.features.layers import of_layers
from veriformer.verify.contract.features.losses import of_losses
from veriformer.verify.contract.features.options import of_numbers, of_options
from veriformer.verify.contract.features.positions import of_positions
from veriformer.verify.contract.features.shapes import of_integers, of_lists, of_shapes
from veriformer.verify.contract.features.training import of_training
from veriformer.verify.contract.features.values import cache_facts, of_values

GRADIENTS = "gradients"
"""Feature of a call that asks for gradients. A call in a dtype has the dtype's name as a feature."""

_SOURCES = (
    *(of_attention, of_losses, of_layers, of_positions, of_training, of_generation),
    *(of_options, of_numbers, of_shapes, of_integers, of_lists, of_values),
)


@cache
def features(operation: str) -> tuple[Feature, ...]:
    """Return the features of calls of an operation, specific ones before general ones; names are unique."""
    found: dict[str, Feature] = {}
    for source in _SOURCES:
        for feature in source(operation):
            found.setdefault(feature.name, feature)
    return tuple(found.values())


@cache
def feature(operation: str, name: str) -> Feature | None:
    """Return the feature of this name; None if there is none, as for ``gradients`` and dtypes."""
    return next((one for one in features(operation) if one.name == name), None)


def present(
    operation: str, arguments: Arguments, *, dtype: str | None = None, gradients: bool = False
) -> frozenset[str]:
    """Return the names of the features that a call has; dtype: the record name of the format it is made in."""
    with cache_facts():
        names = {one.name for one in features(operation) if one.present(arguments)}
    return frozenset(names | ({dtype} if dtype else set()) | ({GRADIENTS} if gradients else set()))


def weight_of(operation: str, names: Iterator[str] | frozenset[str]) -> Weight:
    """Return the severity if only calls with all of these features go wrong: that of the least ordinary one."""
    weights = {one.weight for one in (feature(operation, name) for name in names) if one is not None}
    return next((weight for weight in (Weight.LEAK, Weight.FRAGILE) if weight in weights), Weight.WRONG)


__all__ = ["GRADIENTS", "feature", "features", "present", "weight_of"]
