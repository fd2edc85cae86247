"""Comparison of two implementations of anything, by a tolerance measured on the first.

>>> from veriformer.verify.comparison import compare
>>> compare("problem.py", "solution.py").raise_for_findings()
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from veriformer.verify.targets.error import TargetError

if TYPE_CHECKING:
    from veriformer.verify.comparison.record import Comparison

__all__ = ["SECONDS", "Comparison", "compare"]

SECONDS = 45.0
"""Time after which a comparison begins nothing new."""


def compare(
    reference: object, candidate: object, *, inputs: object = None, device: str = "cpu", seconds: float = SECONDS
) -> Comparison:
    """Compare two functions, classes of modules, or files that hold one each.

    reference, candidate: paths, names (``pkg.mod:thing``), or functions and classes that can be imported. inputs: a
    file with ``get_inputs()`` or a function that gives arguments; by default the reference's file has one. seconds:
    after which nothing new is begun. Raises TargetError where something cannot be loaded.
    """
    # These import PyTorch, which the command line does after its arguments are checked.
    from veriformer.verify.comparison.record import conclude
    from veriformer.verify.comparison.run import observe, word
    from veriformer.verify.comparison.session import WITHIN, Session

    if WITHIN in os.environ:
        raise TargetError("compare() runs when the file is loaded: call it below `if __name__ == '__main__':`")
    with Session(device) as session:
        given = None if inputs is None else word(inputs)
        return conclude(observe(session, word(reference), word(candidate), given, seconds))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return Comparison, whose module imports PyTorch, at its first use."""
        if name != "Comparison":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from veriformer.verify.comparison.record import Comparison

        return Comparison
