"""Execution trace of a target's code during its operations: lines, and values of its parameters."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

CALLS, OF_A_ROW = 60, 24
"""Calls of a probe, and of one row, that are watched: what does not run in so many of every row runs in few others."""

BUILT, CALLED = "built", "called"
"""Places of a parameter: in a constructor or a configuration, or in a call."""

MANY = "a tensor"
"""The value of a parameter that is given tensors, or parts of a network: each is another."""

ENTRIES = ("__init__", "__new__")
CALLS_OF_CLASSES = ("forward", "__call__", "step", "encode", "decode", "get_lr", "loss", "update")

Parameter = tuple[str, str]
"""Place and name."""


@dataclass
class Seen:
    """Execution trace of one operation.

    lines: by file. entered: by file, first lines of the functions that were entered. values: at most two values of each
    parameter, in words. names: all names that the entered functions mention.
    """

    lines: dict[str, set[int]] = field(default_factory=dict)
    entered: dict[str, set[int]] = field(default_factory=dict)
    values: dict[Parameter, set[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def size(self) -> int:
        """Return how much was seen."""
        return sum(len(found) for by in (self.lines, self.entered, self.values) for found in by.values())

    def add(self, other: Seen) -> None:
        """Take up what another has seen."""
        for file, numbers in other.lines.items():
            self.lines.setdefault(file, set()).update(numbers)
        for file, numbers in other.entered.items():
            self.entered.setdefault(file, set()).update(numbers)
        for parameter, words in other.values.items():
            self.values.setdefault(parameter, set()).update(words)
        self.names |= other.names


@dataclass
class Watch:
    """Watches the code of some files.

    roots: by operation the functions whose parameters are looked at, with the place of each. seen: by operation.
    chosen: by operation the parameters by a word of which the code is this operation, and another by another word.
    """

    files: frozenset[str]
    roots: dict[str, dict[CodeType, str]] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    chosen: dict[str, frozenset[str]] = field(default_factory=dict)
    _sizes: dict[str, int] = field(default_factory=dict)
    _left: int = CALLS
    _now: Seen = field(default_factory=Seen)
    _roots: dict[CodeType, str] = field(default_factory=dict)
    _lines: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def shown(self, file: str) -> str:
        """Return the name by which a file is told: below the folder that all of them have in common."""
        common = os.path.commonpath([str(Path(one).resolve().parent) for one in self.files])
        return os.path.relpath(Path(file).resolve(), common)

    def begin(self, calls: int = CALLS) -> None:
        """Watch so many of the next calls: those of another row, or of a probe."""
        self._left = calls

    def changed(self) -> list[str]:
        """Return the operations of which more was seen since this was asked before."""
        sizes = {operation: seen.size() for operation, seen in self.seen.items()}
        found = [operation for operation, size in sizes.items() if self._sizes.get(operation) != size]
        self._sizes = sizes
        return found

    @contextlib.contextmanager
    def watching(self, operation: str) -> Iterator[Seen]:
        """Note what runs inside for an operation, while calls are watched at all; other traces are put back."""
        found = self.seen.setdefault(operation, Seen())
        if self._left <= 0:
            yield found
            return
        self._left -= 1
        self._now, self._roots, self._lines = found, self.roots.get(operation, {}), {}
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            yield found
        finally:
            sys.settrace(before)

    def add_root(self, operation: str, thing: Any) -> None:
        """Look at the parameters of this function or class, which is the operation."""
        self.roots.setdefault(operation, {}).update(roots_of(thing, self.files))

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename not in self.files:
            return None
        if not code.co_name.startswith("<"):
            known = self._now.entered.setdefault(code.co_filename, set())
            if code.co_firstlineno not in known:
                known.add(code.co_firstlineno)
                self._now.names.update(code.co_names, (x for x in code.co_consts if isinstance(x, str)))
        if code in self._roots:
            self._note(code, frame)
        return self._liner(code.co_filename)

    def _liner(self, file: str) -> Callable[..., Any]:
        if file not in self._lines:
            add = self._now.lines.setdefault(file, set()).add

            def line(frame: FrameType, event: str, argument: Any) -> Any:
                if event == "line":
                    add(frame.f_lineno)
                return line

            self._lines[file] = line
        return self._lines[file]

    def _note(self, code: CodeType, frame: FrameType) -> None:
        place, given = self._roots[code], frame.f_locals
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            if name in ("self", "cls") or name not in given:
                continue
            for parameter, word in _worded(place, name, given[name]):
                words = self._now.values.setdefault(parameter, set())
                if len(words) < 2:
                    words.add(word)


def _worded(place: str, name: str, value: Any) -> Iterator[tuple[Parameter, str]]:
    """Yield the parameter with its value in words; for a configuration, each entry that is a plain value."""
    entries = entries_of(value)
    if entries is None or place != BUILT:
        yield (place, name), in_words(value)
        return
    for entry, held in entries.items():
        if isinstance(held, bool | int | float | str) or held is None:
            yield (place, f"{name}.{entry}"), in_words(held)


def entries_of(value: Any) -> Mapping[str, Any] | None:
    """Return what a configuration holds, by name; None for what is none."""
    if isinstance(value, Mapping):
        return {str(key): held for key, held in value.items()}
    plain = value is None or isinstance(value, bool | int | float | str | list | tuple | type) or callable(value)
    if plain or hasattr(value, "shape") or not hasattr(value, "__dict__"):
        return None
    return {key: held for key, held in vars(value).items() if key[:1] != "_"}


def in_words(value: Any) -> str:
    """Return a value in words that distinguish it from other values."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:60]
    if isinstance(value, list | tuple) and all(isinstance(x, bool | int | float | str) for x in value):
        return repr(value)[:60]
    return MANY


def roots_of(thing: Any, files: frozenset[str]) -> dict[CodeType, str]:
    """Return the code of a function, or of a class's constructor and call, with the place of its parameters."""
    if inspect.isclass(thing):
        kinds = [kind for kind in thing.__mro__ if kind is not object]
        named = [(kind, name) for kind in kinds for name in (*ENTRIES, *CALLS_OF_CLASSES) if name in vars(kind)]
        found = {_code(vars(kind)[name]): BUILT if name in ENTRIES else CALLED for kind, name in reversed(named)}
    else:
        found = {_code(thing): CALLED}
    return {code: place for code, place in found.items() if code is not None and code.co_filename in files}


def _code(function: Any) -> CodeType | None:
    plain = getattr(function, "__func__", function)
    plain = inspect.unwrap(plain) if callable(plain) else plain
    return getattr(plain, "__code__", None)


def watch_of(found: object) -> Watch | None:
    """Return what watches the files of a module, a class, a function or an object; None where they have none."""
    module = found if inspect.ismodule(found) else inspect.getmodule(found if callable(found) else type(found))
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py"):
        return None
    folder = Path(file).resolve().parent
    files = {file, str(Path(file).resolve())}
    if getattr(module, "__package__", None) and (folder / "__init__.py").is_file():
        files |= {str(path) for path in folder.rglob("*.py")}
    return Watch(frozenset(files))
