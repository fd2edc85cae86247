"""The operations of the contract as records, in the contract's order.

The record of an operation is the constant of its name in ``operations/<area>/<operation>.py``, or in ``record.py`` of
the folder of that name.
"""

from importlib import import_module
from types import ModuleType

from veriformer.verify.contract.signatures import AREA
from veriformer.verify.judging.op_info import OpInfo


def home(operation: str) -> ModuleType:
    """Return the module that holds the record of an operation. Raises ImportError where there is none."""
    module = import_module(f"veriformer.verify.operations.{AREA[operation]}.{operation}")
    return import_module(f"{module.__name__}.record") if hasattr(module, "__path__") else module


def _record(operation: str) -> OpInfo:
    found = vars(home(operation)).get(operation.upper())
    if not isinstance(found, OpInfo):
        where = home(operation).__name__
        raise ImportError(f"{where}: expected its record as {operation.upper()}, got {found!r}; define it there")
    return found


OPERATIONS: tuple[OpInfo, ...] = tuple(map(_record, AREA))
"""Every operation that the suite judges."""
