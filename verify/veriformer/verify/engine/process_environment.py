"""Environment of the worker processes: one thread each, and no import from the folder where the suite is started."""

from __future__ import annotations

import os

OF_WORKERS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "PYTHONSAFEPATH": "1",
}
"""Environment variables that the libraries below PyTorch and NumPy, and Python, read as they are loaded.

There are as many workers as cores, and NumPy's products of matrices would wait for their other threads without giving
up the cores. A file in the folder where the suite is started, such as typing.py, may have the name of a module of
Python's.
"""


def of_worker() -> dict[str, str]:
    """Return the environment of a process that is started from this one."""
    return {**os.environ, **OF_WORKERS}
