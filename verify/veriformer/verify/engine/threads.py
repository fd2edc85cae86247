"""How many threads the processes of a run may use: one each, since there are as many of them as cores."""

from __future__ import annotations

import os

ONE = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
"""Environment variables that the libraries below PyTorch and NumPy read as they are loaded.

NumPy's products of matrices would wait for their other threads without giving up the cores.
"""


def with_one() -> dict[str, str]:
    """The environment of a process that is started from this one, with a single thread for each library."""
    return {**os.environ, **ONE}
