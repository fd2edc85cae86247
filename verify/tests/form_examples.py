"""Not a test: code as people write it, and what it is recognised as, from the tables in `forms/examples/`.

An example is a text, ``code``, or else a file of `forms/` of this name. Each of its cases is that text after edits
(``old`` and ``new``, or several under ``edits``), or what the file has by the name ``of``, or by the names ``among``:

- ``right``: operations that are recognised and right in every call, with what else is said of them
- ``wrong``: operations that are recognised and wrong in some calls; of no others is anything recognised
- ``refused``: names of what looks like an operation and is not judged, each with a part of OPERATION: REASON
- ``named``: those of them that have its name; ``unknown``: names of what no form knows

Fields of an operation are its ``form``, ``conventions``, ``deviations``, ``unread``, parts of what is ``said`` of it,
and readings. Where it is right, it has no other conventions, and no other reading that is not the contract's. Where
several have one operation, each is written NAME as OPERATION. ``first`` puts cases into the first tier.
"""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.edited_files import apply_edits, write_text
from tests.faulty_forms import FOLDER, form_file
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.candidates import find_candidate
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.locating import resolve
from veriformer.verify.targets.source_files import module_of


@dataclass(frozen=True)
class FormCase:
    """Case of an example: its row in a table, and the example's."""

    name: str
    example: Mapping[str, Any]
    row: Mapping[str, Any]

    @property
    def first(self) -> bool:
        """Return whether the case is of the first tier."""
        return bool(self.row.get("first", self.example.get("first", False)))

    @property
    def text(self) -> str:
        """Return the text of the example after the edits of this case."""
        edits = self.row.get("edits", [self.row] if "old" in self.row else [])
        return apply_edits(self.example["code"] + "\n", edits, self.name)

    def recognise(self) -> Recognised:
        """Return what is recognised in this case."""
        if "code" in self.example:
            return recognise(text_module(self.name))
        module = loaded_form(self.example["file"])
        return recognise(getattr(module, self.row["of"]) if "of" in self.row else module, among=self.row.get("among"))


@functools.cache
def loaded_form(name: str) -> Any:
    """Return the module in a file of `forms/`, which may be a faulty one."""
    return resolve(str(form_file(name)))[0]


@functools.cache
def form_cases() -> dict[str, FormCase]:
    """Return the cases of all examples by name: EXAMPLE where it has one, else EXAMPLE-NUMBER or EXAMPLE-NAME."""
    return {case.name: case for file in sorted((FOLDER / "examples").glob("*.toml")) for case in _cases(file)}


def _cases(file: Path) -> Iterator[FormCase]:
    for name, example in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for number, row in enumerate(example["cases"]):
            yield FormCase(f"{name}-{row.get('of', number)}", {"file": name, **example}, row)


def form_text(name: str) -> str:
    """Return the text of a case."""
    return form_cases()[name].text


def text_file(name: str) -> Path:
    """Return the path of a file with the text of a case, which is written once in a process."""
    return write_text(f"example_{list(form_cases()).index(name)}", "examples", lambda: form_text(name))


def text_module(name: str) -> Any:
    """Return the module with the text of a case."""
    return module_of(text_file(name))


def bound_text(name: str, operation: str) -> Callable[..., Any]:
    """Return an operation of the text of a case, bound as it is recognised."""
    module = text_module(name)
    (pin,) = (pin for pin in recognise(module).pins if pin.operation == operation)
    return bound(pin, find_candidate(module, pin.name))


def differences(found: Recognised, row: Mapping[str, Any]) -> list[str]:
    """Return in what recognition is not as a row says."""
    off = []
    for side in ("right", "wrong"):
        rows = row.get(side, {})
        pins = _by_name([pin for pin in found.pins if pin.everywhere == (side == "right")], rows)
        if pins.keys() != {*rows}:
            off.append(f"{side}: {pins}, expected {list(rows)}")
        for name in pins.keys() & {*rows}:
            pin, fields = pins[name], rows[name] if isinstance(rows, Mapping) else {}
            if side == "right":
                fields = {"conventions": {}, **fields}
                off += [f"{pin}, expected no other {key}" for key in pin.deviations if key not in fields]
            off += [f"{pin}, expected {key} = {value!r}" for key, value in fields.items() if not _has(pin, key, value)]
    given = {
        "unknown": list(found.unknown),
        "named": [one.name for one in found.refused if one.named],
        "refused": [one.name for one in found.refused],
    }
    off += [f"{key}: {given[key]}, expected {row[key]}" for key in given.keys() & row if given[key] != [*row[key]]]
    reasons = {one.name: f"{one.operation}: {one.reason}" for one in found.refused}
    parts = row.get("refused", {}).items()
    return off + [f"{name}: {reasons[name]}, expected {x!r}" for name, x in parts if x not in reasons.get(name, x)]


def _by_name(pins: Sequence[Pin], names: Collection[str]) -> dict[str, Pin]:
    """Return pins by operation, or as NAME as OPERATION where that is among the names or one operation is several's."""
    times = Counter(pin.operation for pin in pins)
    long = {f"{pin.name} as {pin.operation}": pin for pin in pins}
    return {x if x in names or times[pin.operation] > 1 else pin.operation: pin for x, pin in long.items()}


def _has(pin: Pin, key: str, value: Any) -> bool:
    if key == "said":
        return all(any(part in told for told in pin.told) for part in value) and bool(value) == bool(pin.told)
    if key in ("deviations", "unread"):
        return list(getattr(pin, key)) == value
    if key in ("form", "conventions"):
        return bool(getattr(pin, key) == value)
    return bool(pin.readings.get(key, False) == value)
