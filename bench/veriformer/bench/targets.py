"""What can be counted, by the names that the command line takes: the one place here that knows an implementation."""

from __future__ import annotations

from dataclasses import dataclass

from veriformer.bench.calls import Attention
from veriformer.bench.claims import AS_PRINTED, IN_BLOCKS, Costs


@dataclass(frozen=True)
class Target:
    """An attention to be counted. skips_blocks: whether blocks that a causal mask hides as a whole are left out."""

    name: str
    attention: Attention
    costs: Costs
    skips_blocks: bool


_SHIPPED: dict[str, tuple[str, Costs, bool]] = {
    "impl:reference": ("reference", AS_PRINTED, False),
    "impl:tiled": ("tiled", IN_BLOCKS, True),
    "impl:sdpa": ("sdpa", IN_BLOCKS, True),
}

NAMES = tuple(_SHIPPED)


class UnknownTargetError(ValueError):
    """No such target; the message lists those there are."""


def find(name: str) -> Target:
    """The target of that name. Raises UnknownTargetError."""
    if name not in _SHIPPED:
        raise UnknownTargetError(f"target {name!r}: expected one of {', '.join(NAMES)}")
    from veriformer.impl import BACKENDS

    backend, costs, skips_blocks = _SHIPPED[name]
    return Target(name, BACKENDS[backend], costs, skips_blocks)


def triton_attention() -> Attention:
    """Our attention by its Triton kernels. Raises RuntimeError, which says what is missing, where none can run."""
    from veriformer.impl import BACKENDS
    from veriformer.impl.attention_backends.flash.availability import require

    require()
    return BACKENDS["triton"]
