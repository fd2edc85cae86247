"""Fields of ``results.json``, as its schema describes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from veriformer.spec.explanation import Explanation, Fact

SCHEMA = "results-2.json"


def names() -> Iterable[str]:
    """Return the path of each field, such as ``findings.what``."""
    return _fields()


def matching(word: str) -> Iterable[str]:
    """Return the fields of that path, or whose last name it is."""
    return [name for name in _fields() if word in (name, name.rpartition(".")[2])]


def explain(name: str) -> Explanation:
    """Return what a field holds."""
    field = _fields()[name]
    return Explanation(
        kind="field",
        name=name,
        remark="field of results.json",
        paragraphs=(field["description"],),
        facts=(
            Fact("type", [_type(field)]),
            Fact("values", [str(value) for value in _resolved(field).get("enum", ())], names="value"),
        ),
    )


@cache
def _schema() -> Mapping[str, Any]:
    folder = resources.files("veriformer.verify") / "schema"
    return dict(json.loads((folder / SCHEMA).read_text(encoding="utf-8")))


@cache
def _fields() -> Mapping[str, Mapping[str, Any]]:
    return dict(_below(_schema(), ""))


def _below(schema: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the properties of a schema by path, and those of what they hold: of entries, and of values by name."""
    for name, field in schema.get("properties", {}).items():
        yield f"{prefix}{name}", field
        held = _resolved(field)
        for part in (held, held.get("items"), held.get("additionalProperties"), *held.get("anyOf", ())):
            if isinstance(part, Mapping):
                yield from _below(_resolved(part), f"{prefix}{name}.")


def _resolved(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a field, or what it refers to."""
    place = field.get("$ref", "").removeprefix("#/$defs/")
    found: Mapping[str, Any] = _schema()["$defs"][place] if place else field
    return found


def _type(field: Mapping[str, Any]) -> str:
    held = _resolved(field)
    if "anyOf" in held:
        return " or ".join(dict.fromkeys(_type(part) for part in held["anyOf"]))
    kind = held.get("type", "string" if "enum" in held or "const" in held else "any")
    of = held.get("items", held.get("additionalProperties"))
    words = [kind] if isinstance(kind, str) else kind
    entries = f" of {_type(of)}" if isinstance(of, Mapping) and of and "object" not in _type(of) else ""
    return " or ".join(f"{word}{entries}" if word in ("array", "object") else word for word in words)
