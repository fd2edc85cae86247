"""Veriformer's own implementation as a target: the same operations, once per attention backend."""

from __future__ import annotations

from types import SimpleNamespace

import veriformer.impl as default
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.flash.availability import require


def backend(name: str) -> SimpleNamespace:
    """Every operation of ``veriformer.impl``, with ``attention`` taken from the named backend."""
    operations = {key: getattr(default, key) for key in default.__all__ if callable(getattr(default, key))}
    return SimpleNamespace(**{**operations, "attention": BACKENDS[name], "__name__": f"veriformer.impl:{name}"})


reference = backend("reference")
tiled = backend("tiled")
sdpa = backend("sdpa")
flex = backend("flex")


def __getattr__(name: str) -> SimpleNamespace:
    """Build ``triton`` only where its kernels can run. Raises UnavailableError, which says what they need."""
    if name != "triton":
        raise AttributeError(name)
    require()
    return backend(name)
