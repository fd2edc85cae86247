"""Whether two implementations of anything agree, by a tolerance that is measured on the first.

>>> from veriformer.verify.comparison import compare
>>> compare("problem.py", "solution.py").raise_for_findings()
"""

from __future__ import annotations

import os

from veriformer.verify.comparison.record import Comparison, concluded
from veriformer.verify.comparison.run import SECONDS, observe, word
from veriformer.verify.comparison.session import WITHIN, Session
from veriformer.verify.targets.loading import TargetError

__all__ = ["SECONDS", "Comparison", "compare"]


def compare(
    reference: object, candidate: object, *, inputs: object = None, device: str = "cpu", seconds: float = SECONDS
) -> Comparison:
    """Compare two functions, classes of modules, or files that hold one each.

    reference, candidate: paths, names (``pkg.mod:thing``), or functions and classes that can be imported. inputs: a
    file with ``get_inputs()`` or a function that gives arguments; by default the reference's file has one. seconds:
    after which nothing new is begun. Raises TargetError where something cannot be loaded.
    """
    if WITHIN in os.environ:
        raise TargetError("compare() runs when the file is loaded: call it below `if __name__ == '__main__':`")
    with Session(device) as session:
        given = None if inputs is None else word(inputs)
        return concluded(observe(session, word(reference), word(candidate), given, seconds))
