"""Attention, computed in several ways that all mean the same."""

from collections.abc import Callable

from torch import Tensor

from veriformer.impl.attention_backends import flex, reference, sdpa, tiled
from veriformer.impl.attention_backends.arguments import Attention, without_autocast
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.flash import triton

DEFAULT = "sdpa"

BACKENDS: dict[str, Attention] = {
    "reference": reference.attention,
    "tiled": tiled.attention,
    "sdpa": sdpa.attention,
    "flex": flex.attention,
    "triton": triton.attention,
}
"""Attention by the name of its backend, each with the arguments and errors of `attention`."""

_COMPUTES: dict[str, Callable[[Call], Tensor]] = {
    "reference": reference.dense,
    "tiled": tiled.tiled,
    "sdpa": sdpa.fused,
    "flex": flex.fused,
    "triton": triton.fused,
}


def attend(call: Call, backend: str = DEFAULT) -> Tensor:
    """Compute `BACKENDS[backend]` for arguments that need no check, as those of a model's layers do not."""
    return without_autocast(_COMPUTES[backend], call)
