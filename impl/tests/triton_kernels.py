"""Triton's kernels under test: compiled where there is a GPU, interpreted in a process that was started for it.

The interpreter has to be asked for before Triton is imported for the first time, so these tests are skipped elsewhere,
and `test_impl_triton.py` starts a process for each of their files.
"""

import importlib.util

import pytest
import torch

from tests.attention_calls import gradients
from veriformer.impl.attention_backends.flash.availability import interpreting
from veriformer.impl.attention_backends.flash.triton import attention_in_tiles

DEVICE = "cuda" if torch.cuda.is_available() and not interpreting() else "cpu"
INSTALLED = importlib.util.find_spec("triton") is not None

kernels = pytest.mark.skipif(
    not INSTALLED or (DEVICE == "cpu" and not interpreting()),
    reason="runs in a process of its own, started by test_impl_triton.py with TRITON_INTERPRET=1",
)

U_FACTOR = {torch.float32: 0.0, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
T = 16
by_16 = attention_in_tiles(T)


def u_factor(dtype):
    """Return the roundoff of factors: the interpreter multiplies halves in float32, a GPU as halves."""
    return 0.0 if DEVICE == "cpu" else U_FACTOR[dtype]


def moved(x):
    return x.to(DEVICE) if torch.is_tensor(x) else x


def on_device(attention, q, k, v, g, **options):
    """Return output and gradients, computed where the kernels run, on the CPU."""
    got = gradients(attention, *map(moved, (q, k, v, g)), **{name: moved(x) for name, x in options.items()})
    return {name: x.cpu() for name, x in got.items()}
