"""Veriformer's own implementation as a target: the same operations, once per attention backend."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import veriformer.impl as default
from veriformer.impl import BACKENDS
from veriformer.impl.attention_backends.flash.availability import require
from veriformer.verify.targets.kinds import MODELS


def backend(name: str) -> SimpleNamespace:
    """Return every operation of ``veriformer.impl``, with attention, that of models too, by the named backend."""
    operations = {key: getattr(default, key) for key in default.__all__ if callable(getattr(default, key))}
    models = {key: partial(operations[key], attention=name) for key in MODELS}
    named = {"attention": BACKENDS[name], "__name__": f"veriformer.impl:{name}"}
    return SimpleNamespace(**operations | models | named)


reference = backend("reference")
tiled = backend("tiled")
sdpa = backend("sdpa")
flex = backend("flex")


def __getattr__(name: str) -> SimpleNamespace:
    """Build ``triton`` only where its kernels can run. Raises UnavailableError, which names the requirement."""
    if name != "triton":
        raise AttributeError(name)
    require()
    return backend(name)
