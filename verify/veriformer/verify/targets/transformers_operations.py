"""transformers under the contract's names: its operations, where they can be reached without a model.

The arguments are checked first, for a library checks few. Everything else is a call of a function or module of
the library; several architectures stand for the many that share them.
"""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace
from typing import Any

from veriformer.verify.targets import (
    transformers_attention,
    transformers_decisions,
    transformers_layers,
    transformers_positions,
)
from veriformer.verify.targets.argument_validation import with_validation

_FAMILIES = (transformers_attention, transformers_decisions, transformers_layers, transformers_positions)
_LACKING = {name: reason for family in _FAMILIES for name, reason in family.NOT_PROVIDED.items()}

CLAIMS: dict[str, Any] = {
    "dtypes": {name: dtypes for family in _FAMILIES for name, dtypes in family.DTYPES.items()},
    "conventions": transformers_decisions.CONVENTIONS,
    "not_provided": _LACKING,
}
_OF_EAGER = {**CLAIMS, "not_provided": {**_LACKING, "cached_attention": "judged in its models, and under sdpa"}}


def _target(name: str, claims: dict[str, Any], attention: dict[str, Any]) -> SimpleNamespace:
    target = with_validation(
        claims,
        **transformers_attention.COMMON,
        **attention,
        **transformers_decisions.RAW_OPS,
        **transformers_layers.RAW_OPS,
        **transformers_positions.RAW_OPS,
    )
    target.__name__, target.__version__ = name, metadata.version("transformers")
    return target


SDPA = _target("transformers", CLAIMS, transformers_attention.SDPA)
EAGER = _target("transformers:eager", _OF_EAGER, transformers_attention.EAGER)
"""The implementations, which differ in attention and its caches."""
