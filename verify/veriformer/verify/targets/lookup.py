"""Checks of the word for a target that neither load it nor import PyTorch."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from veriformer.spec.suggestion import files_beside, meant, some
from veriformer.verify import targets
from veriformer.verify.targets.claim_keys import check_keys
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.made_names import (
    bound,
    identifiers,
    lacks,
    may_have,
    mentions,
    not_an_edit,
    parse,
    source_of,
)
from veriformer.verify.targets.transformers_models import ARCHITECTURES


def check(spec: str) -> None:
    """Raise TargetError where it can be seen, without running anything, that nothing can be loaded by that word."""
    if targets.is_shipped(spec):
        _check_made(spec)
        return
    place, attribute = split_target(spec)
    if spec.endswith(":") and place != spec:
        raise TargetError(
            f"target {spec!r}: expected a name after the colon, got none; leave the colon out for all of it"
        )
    if place.endswith(".py"):
        _check_file(spec, place, attribute)
        return
    if Path(place).exists() and not _is_module(place):
        _check_place(spec, Path(place))
    if not all(part.isidentifier() for part in place.split(".")) or not _is_there(place.partition(".")[0]):
        raise TargetError(unknown(spec))
    if attribute:
        _check_attribute(spec, place, attribute)


def _check_attribute(spec: str, place: str, attribute: str) -> None:
    """Raise TargetError for a name that an installed module lacks, as far as its text shows."""
    file = source_of(place)
    if file is None:
        return
    if lacks(file, attribute):
        raise TargetError(no_attribute(spec, place, attribute, [*bound(parse(file).body)]))
    # Of a library that ships as a target, some names stand for a way of calling it, and a wrong one for none.
    if any(name.startswith(f"{place}:") for name in targets.names()) and not mentions(file.parent, attribute):
        raise TargetError(no_attribute(spec, place, attribute, ()))


def _check_place(spec: str, place: Path) -> None:
    """Raise TargetError for a file that is not Python, and for a folder without any."""
    if place.is_file():
        close = meant(str(place), files_beside(str(place)))
        advice = "; results are read by 'veriformer report' and 'veriformer diff'" if place.suffix == ".json" else ""
        raise TargetError(f"{_expected(spec)}, got a file that ends in {place.suffix or 'nothing'!r}{advice or close}")
    if not any(place.rglob("*.py")):
        raise TargetError(
            f"target {spec!r}: expected Python files in the folder {place}, got none; name a file or a package"
        )


def _is_module(word: str) -> bool:
    """Return whether a module is installed by that name, whatever else lies here under it."""
    found = PathFinder.find_spec(word, [str(Path.cwd()), *sys.path]) if word.isidentifier() else None
    return found is not None and found.origin is not None


def _check_made(spec: str) -> None:
    """Raise TargetError for a mutant, a variant, a sabotage adapter or an architecture that there is not."""
    family, _, identifier = spec.partition(":")
    if family == "generic" and (reason := not_an_edit(identifier)):
        raise TargetError(f"target {spec!r}: {reason}; 'veriformer mutants generic' lists them")
    known = {**identifiers(), "transformers": ("eager", *ARCHITECTURES)}.get(family)
    if identifier and known is not None and identifier not in known:
        one = "architecture" if family == "transformers" else family
        raise TargetError(f"target {spec!r}: no such {one}{meant(identifier, known)}: expected one of {some(known)}")


def split_target(spec: str) -> tuple[str, str]:
    """Return the file or module of a word, and the attribute that it names; empty where it names none."""
    place, _, attribute = spec.partition(":") if not Path(spec).exists() else (spec, "", "")
    return place, attribute


def unknown(spec: str) -> str:
    """Return the message on a word that stands for nothing."""
    return f"{_expected(spec)}{meant(spec, [*targets.names(), *files_beside(spec)])}"


def _expected(spec: str) -> str:
    return (
        f"target {spec!r}: expected a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing) "
        f"or a name that ships with the suite ({some(targets.names())})"
    )


def no_file(place: str) -> str:
    """Return the message on a file that is not there."""
    return f"target {place!r}: no such file (looked at {Path(place).absolute()}){meant(place, files_beside(place))}"


def no_attribute(spec: str, place: str, attribute: str, names: Iterable[str]) -> str:
    """Return the message on a name that a file or module lacks."""
    close = meant(attribute, names) or meant(spec, targets.names())
    return f"target {spec!r}: {place} has no attribute {attribute!r}{close}"


def _check_file(spec: str, place: str, attribute: str) -> None:
    path = Path(place)
    if not path.is_file():
        raise TargetError(no_file(place))
    try:
        tree = parse(path)
    except SyntaxError as error:
        line = f": {error.text.strip()}" if error.text else ""
        where = f"{place}:{error.lineno}" if error.lineno else place
        raise TargetError(f"target {spec!r} could not be loaded: SyntaxError: {error.msg} ({where}{line})") from error
    except (OSError, ValueError) as error:
        raise TargetError(f"target {spec!r} could not be read: {error}") from error
    for claims in _literals(tree, "CLAIMS"):
        check_keys(claims)
    if attribute and not may_have(tree, attribute):
        public = [name for name in bound(tree.body) if not name.startswith("_")]
        raise TargetError(no_attribute(spec, place, attribute, public))


def _literals(tree: ast.Module, name: str) -> Iterator[object]:
    """Give the values that a file assigns to a name where they are written out."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            try:
                yield ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue


def _is_there(top: str) -> bool:
    if top in sys.modules or top in sys.builtin_module_names:
        return True
    try:
        return (
            PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is not None
            or importlib.util.find_spec(top) is not None
        )
    except (ImportError, ValueError, AttributeError):
        return True  # it is to be imported, which says more
