"""x-transformers under the contract's names: its functions and modules, and models of its three kinds.

The arguments are checked first. Attention comes written out, and through PyTorch's kernel (``flash``).
"""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace

from veriformer.verify.targets import (
    x_transformers_attention,
    x_transformers_layers,
    x_transformers_models,
    x_transformers_positions,
)
from veriformer.verify.targets.argument_validation import with_validation


def _target(flash: bool, name: str) -> SimpleNamespace:
    target = with_validation(
        {
            "dtypes": {**x_transformers_positions.DTYPES, **x_transformers_attention.dtypes(flash)},
            "conventions": x_transformers_layers.CONVENTIONS,
            "not_provided": {**x_transformers_attention.NOT_PROVIDED, **x_transformers_layers.NOT_PROVIDED},
        },
        **x_transformers_attention.raw_ops(flash),
        **x_transformers_layers.RAW_OPS,
        **x_transformers_models.RAW_OPS,
        **x_transformers_positions.RAW_OPS,
    )
    target.__name__, target.__version__ = name, metadata.version("x-transformers")
    return target


WRITTEN_OUT = _target(flash=False, name="x-transformers")
FLASH = _target(flash=True, name="x-transformers:flash")
"""The implementations, which differ in attention."""
