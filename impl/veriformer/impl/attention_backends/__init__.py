"""Attention, computed in several ways that all mean the same."""

from veriformer.impl.attention_backends import flex, reference, sdpa, tiled
from veriformer.impl.attention_backends.arguments import Attention
from veriformer.impl.attention_backends.flash import triton

BACKENDS: dict[str, Attention] = {
    "reference": reference.attention,
    "tiled": tiled.attention,
    "sdpa": sdpa.attention,
    "flex": flex.attention,
    "triton": triton.attention,
}
