"""Lookup of the object that a word on the command line refers to. PyTorch is imported only if that imports it."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType

from veriformer.verify import targets
from veriformer.verify.results.foreign import exception_text
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.files import loading_lines
from veriformer.verify.targets.lookup import no_attribute, no_file, split_target, unknown
from veriformer.verify.targets.source_files import definitions_of, is_program, module_of


def locate(spec: str) -> tuple[object, str]:
    """Return the object that a target's word stands for, unchanged, and Python lines that bind ``target`` to it.

    Folders that loading it takes from the path of searches are searched last: the suite imports from there later.
    Raises TargetError with the reason for anything that cannot be loaded, whatever it raised.
    """
    folders = [*sys.path]
    try:
        return resolve(spec)
    except TargetError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TargetError(f"target {spec!r} could not be loaded, it raised {exception_text(error)}") from error
    finally:
        sys.path.extend(folder for folder in folders if folder not in sys.path)


def resolve(spec: str) -> tuple[object, str]:
    """Return the object that a target's name refers to, and Python lines that bind it to ``target``."""
    shipped = targets.find(spec)
    if shipped is not None:
        return shipped(), f"from veriformer.verify import load\n\ntarget = load({spec!r}).implementation"
    place, attribute = split_target(spec)
    module, lines = _of_file(place, attribute) if place.endswith(".py") else _module(place, attribute, spec)
    if not attribute:
        return module, lines
    if not hasattr(module, attribute):
        raise TargetError(no_attribute(spec, place, attribute, dir(module)))
    return getattr(module, attribute), lines


def _of_file(place: str, attribute: str) -> tuple[ModuleType, str]:
    return _file(place), loading_lines(Path(place).resolve(), attribute)


def _file(place: str) -> ModuleType:
    path = Path(place).resolve()
    if not path.is_file():
        raise TargetError(no_file(place))
    if is_program(path):
        return definitions_of(path)
    try:
        return module_of(path)
    except Exception as error:
        # It may be a program that needs its data, whose functions and classes do not.
        module = definitions_of(path, exception_text(error))
        if not any(inspect.isfunction(x) or inspect.isclass(x) for x in vars(module).values()):
            raise error from None
        return module


def _module(place: str, attribute: str, spec: str) -> tuple[ModuleType, str]:
    if not all(part.isidentifier() for part in place.split(".")):
        raise TargetError(unknown(spec))
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise TargetError(unknown(spec)) from error
        raise
    loaded = f"importlib.import_module({place!r})"
    return module, f"import importlib\n\ntarget = {loaded}{'.' if attribute else ''}{attribute}"
