"""From the word on the command line to the object whose operations are counted."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


class LoadingError(ValueError):
    """The target cannot be loaded; the message says what was expected, what was found and what to do."""


def load(word: str) -> object:
    """A file (``path/to/mine.py``), a dotted module, or an attribute of either (``pkg.mod:thing``).

    Raises LoadingError with the reason for anything that cannot be loaded, whatever it raised.
    """
    try:
        place, _, attribute = word.partition(":") if not Path(word).exists() else (word, "", "")
        module = _file(place) if place.endswith(".py") else _module(place)
        return getattr(module, attribute) if attribute else module
    except LoadingError:
        raise
    except Exception as error:
        raise LoadingError(f"target {word!r}: raised {type(error).__name__} while it was loaded: {error}") from error


def _file(place: str) -> ModuleType:
    path = Path(place).resolve()
    found = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if found is None or found.loader is None:
        raise LoadingError(f"target {place!r}: expected a Python file, found none at {path}; check the path")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.parent))  # a file may import its neighbours, as a script may
    sys.modules.setdefault(path.stem, module)
    found.loader.exec_module(module)
    return module


def _module(place: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")) or importlib.util.find_spec(place) is None:
        raise LoadingError(
            f"target {place!r}: expected a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing)"
        )
    return importlib.import_module(place)
