"""Properties that bind any implementation to the specification.

>>> from veriformer.verify import check
>>> check(my_module, only=["softmax"]).to_pandas()
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veriformer.verify.comparison import Comparison, compare
    from veriformer.verify.engine.run import check
    from veriformer.verify.engine.user_tests import conformance
    from veriformer.verify.forms.binding import bind
    from veriformer.verify.presentation.error import FindingsError
    from veriformer.verify.presentation.error import raise_for as raise_for
    from veriformer.verify.results import Result, Results, Status
    from veriformer.verify.targets.error import TargetError
    from veriformer.verify.targets.loading import load
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

_MODULES = {
    "Comparison": "comparison",
    "FindingsError": "presentation.error",
    "Result": "results",
    "Results": "results",
    "Status": "results",
    "Target": "targets.target",
    "TargetError": "targets.error",
    "bind": "forms.binding",
    "check": "engine.run",
    "compare": "comparison",
    "conformance": "engine.user_tests",
    "load": "targets.loading",
    "module_of": "targets.source_files",
    "raise_for": "presentation.error",
}
"""The module of each name. It is imported at its first use: the command line checks arguments before PyTorch loads."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Return the attribute of that name, from the module that defines it."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the public interface."""
    return [*__all__]
