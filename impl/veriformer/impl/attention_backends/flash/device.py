"""What a function that kernels call is made of."""

from typing import Any

import triton

from veriformer.impl.attention_backends.flash.availability import interpreting


def device(function: Any) -> Any:
    """Let kernels call a function.

    To the interpreter it may stay plain Python: it would otherwise patch the whole language anew for every call.
    """
    return function if interpreting() else triton.jit(function)
