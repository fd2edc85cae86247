"""Ordinary calls: only a finding that such a call shows is *wrong* or a *leak*.

Usual ranks, sizes of at least 1, finite normal numbers of moderate size, arguments of their usual type, no degenerate
constant: the weights of a call's features say all of it but for numbers that no feature tells of.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.contract.feature import Arguments
from veriformer.verify.contract.features import feature, features, present
from veriformer.verify.contract.features.values import Facts, is_moderate


def is_ordinary(operation: str, names: Collection[str], arguments: Arguments, cotangent: Any = None) -> bool:
    """Return whether a call is ordinary.

    names: of its features, as ``present`` gives them. cotangent: of the gradients that it asks for, or None.
    """
    known = (feature(operation, name) for name in names)
    usual = all(one is None or one.weight is Weight.WRONG for one in known)
    lists = [value for value in arguments.values() if isinstance(value, list | tuple)]
    return usual and all(map(_moderate, (cotangent, *lists)))


def unusual(
    operation: str, arguments: Arguments, provided: Collection[str], claimed: Collection[str] = ()
) -> str | None:
    """Return the name of the feature for which a call may be refused; None for one that must be answered.

    provided: the features that answered calls had: what no such call has may be refused, and so may what is not
    ordinary. claimed: those that are claimed to be provided.
    """
    names = present(operation, arguments)
    if not names.isdisjoint(claimed):
        return None
    listed = [one for one in features(operation) if one.name in names]
    new = next((one.name for one in listed if one.optional and one.name not in provided), None)
    return new or next((one.name for one in listed if one.weight is not Weight.WRONG), None)


def _moderate(value: Any) -> bool:
    """Return whether the floating tensors in a value hold finite normal numbers of moderate size."""
    if isinstance(value, list | tuple):
        return all(map(_moderate, value))
    return not (isinstance(value, torch.Tensor) and value.is_floating_point()) or is_moderate(Facts(value.detach()))
