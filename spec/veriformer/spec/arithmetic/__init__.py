"""Four arithmetics for each formula: to prove it, to evaluate it exactly, to sample it, and to bound its rounding."""

from veriformer.spec.arithmetic.exact import Exact
from veriformer.spec.arithmetic.float import Float
from veriformer.spec.arithmetic.formats import FORMATS, Format
from veriformer.spec.arithmetic.running_error import RunningError, RunningErrorArray
from veriformer.spec.arithmetic.symbolic import Symbolic
from veriformer.spec.arithmetic.vocabulary import Arithmetic, Array

__all__ = [
    "FORMATS",
    "Arithmetic",
    "Array",
    "Exact",
    "Float",
    "Format",
    "RunningError",
    "RunningErrorArray",
    "Symbolic",
]
