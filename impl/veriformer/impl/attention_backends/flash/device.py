"""Decorator of device functions, and arguments that kernels are not specialised for."""

from typing import Any

import triton

from veriformer.impl.attention_backends.flash.availability import interpreting

LENGTHS = ["n_q", "n_k", "shift", "window"]
"""Arguments of a kernel that it is not compiled for anew when they become 1, or a multiple of 16."""


def device(function: Any) -> Any:
    """Let kernels call a function.

    To the interpreter it may stay plain Python: it would otherwise patch the whole language anew for every call.
    """
    return function if interpreting() else triton.jit(function)
