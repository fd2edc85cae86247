"""Properties that bind any implementation to the specification.

>>> from veriformer.verify import check
>>> check(my_module, only=["softmax"]).to_pandas()
"""

from veriformer.verify.comparison import Comparison, compare
from veriformer.verify.engine.run import check
from veriformer.verify.engine.user_tests import conformance
from veriformer.verify.forms.binding import bind
from veriformer.verify.presentation.error import FindingsError
from veriformer.verify.results import Result, Results, Status
from veriformer.verify.targets.loading import TargetError, load
from veriformer.verify.targets.source_files import module_of
from veriformer.verify.targets.target import Target

__all__ = [
    "Comparison",
    "FindingsError",
    "Result",
    "Results",
    "Status",
    "Target",
    "TargetError",
    "bind",
    "check",
    "compare",
    "conformance",
    "load",
    "module_of",
]
