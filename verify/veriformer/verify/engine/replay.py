"""A stored counterexample, run again: the first thing that a row with a known failure does."""

from __future__ import annotations

import contextlib
import io

import torch


def reproduces(script: str) -> str | None:
    """Run a counterexample's script; return its final message where it still finds the violation, else None.

    It runs in this process, and leaves PyTorch's default dtype and generator as they were.
    """
    default, drawn = torch.get_default_dtype(), torch.get_rng_state()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(script, "stored counterexample", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return None if end.code in (0, None) else str(end.code)
    except Exception as error:
        return f"raised {type(error).__name__}: {error}"
    finally:
        torch.set_default_dtype(default)
        torch.set_rng_state(drawn)
    return None
