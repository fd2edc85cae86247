"""Adapter of a recognised target: a Python file in the contract's terms, to be edited and committed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from veriformer.spec.operations import OPERATIONS
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.registry import form_named
from veriformer.verify.results.domain import Domain

_HEAD = '''"""{what} under the names of the contract, as `veriformer inspect` recognised it. Edit it and commit it.

    veriformer verify {file}

A line `operation = bind(form, thing, reading=value, ...)` says how the code is called. Where it is called wrongly,
change a reading, or write a function with the contract's signature in its place.
"""
'''


def adapter(target: str, pins: Sequence[Pin], domains: Mapping[str, Any], file: Path) -> str:
    """Return the text of the file. target: the word on the command line. domains: by operation, what a probe found
    out.
    """
    imports, place = _imports(target, file)
    lines = [_HEAD.format(what=target, file=file.name), *imports, ""]
    judged: set[str] = set()
    for pin in pins:
        lines += ["", *_lines(pin, place, domains.get(pin.operation, {}), pin.operation in judged)]
        judged.add(pin.operation)
    conventions = {key: value for pin in reversed(pins) for key, value in pin.conventions.items()}
    if conventions:
        lines += ["", f'CLAIMS = {{"conventions": {_dict(conventions)}}}']
    return "\n".join(lines) + "\n"


def _imports(target: str, file: Path) -> tuple[list[str], str]:
    """Return lines that import the code, and the expression for its module."""
    place, _, _ = target.partition(":") if not Path(target).exists() else (target, "", "")
    bound = "from veriformer.verify import bind"
    if place.endswith(".py"):
        path = os.path.relpath(Path(place).resolve(), file.resolve().parent)
        name = Path(place).stem if Path(place).stem.isidentifier() and Path(place).stem != "code" else "theirs"
        lines = ["from pathlib import Path", "", "from veriformer.verify import bind, module_of", ""]
        return [*lines, f"{name} = module_of((Path(__file__).parent / {path!r}).resolve())"], name
    return ["import importlib", "", bound, ""], f"importlib.import_module({place!r})"


def _lines(pin: Pin, place: str, domain: Mapping[str, Any], again: bool) -> list[str]:
    """Return the lines of one operation: its definition, the facts known of it, and the call."""
    head, _, name = pin.name.rpartition(".")
    where = place if not head else f"{place[:-2]}.{head}')" if place.startswith("importlib") else f"{place}.{head}"
    thing = f"{where}.{name}" if name else where
    readings = "".join(f", {_as_keyword(key, value)}" for key, value in pin.readings.items())
    lines = [f"# {OPERATIONS[pin.operation].text}" if pin.operation in OPERATIONS else f"# {pin.operation}"]
    lines += [f"# {form_named(pin.form).says}"]
    lines += [f"# {one}" for one in pin.told]
    if not pin.everywhere:
        lines.append("# No reading gives the published results everywhere: this one is the nearest.")
    known = Domain.from_dict(domain)
    lines += [f"# {key} = {value!r}, {known.how(key)}" for key, value in known.constants.items()]
    line = f"{pin.operation} = bind({pin.form!r}, {thing}{readings})"
    return [*lines, f"# {line}" if again else line]


def _as_keyword(name: str, value: str) -> str:
    """Return a reading as an argument of ``bind``: the path of a part is no identifier."""
    return f"{name}={value!r}" if name.isidentifier() else f"**{{{name!r}: {value!r}}}"


def _dict(conventions: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{key}": "{value}"' for key, value in conventions.items()) + "}"
