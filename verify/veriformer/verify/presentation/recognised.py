"""Recognised forms of code that was not written for the contract, in lines that come before its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from veriformer.verify.results.foreign import named, one_line

Line = tuple[str, str]
"""Label and text."""

_NOTHING = (
    "nothing in it was recognised: give a function the name and the arguments of an operation, as "
    "'veriformer explain softmax' tells them"
)
_LINE = 240
_FEW = 12


def opening(target: str, found: Mapping[str, Any]) -> str:
    """Return the line above the lines."""
    name, own = one_line(target, 80), found.get("by_name", ())
    if own:
        what = "besides it was recognised as follows" if found.get("recognised") else "nothing else was recognised"
        return f"{name} offers {named(own, 5)} by name; {what}"
    what = "by itself it was recognised as follows" if found.get("recognised") else _NOTHING
    return f"{name} has no names of the contract; {what}"


def lines(found: Mapping[str, Any], most: int = _FEW) -> Iterator[Line]:
    """Give operations first, each with the reading by which it is called, then what is like one and not judged."""
    judged = {pin["operation"]: pin for pin in judged_whole(found)}
    further: dict[str, list[str]] = {name: [] for name in judged}
    for pin in found.get("recognised", ()):
        if pin is not judged.get(pin["operation"]):
            further.setdefault(pin["operation"], []).append(pin["name"])
    for operation, others in further.items():
        if operation in judged:
            yield "recognised", one_line(_told(judged[operation]), _LINE)
        if others:
            how = "judged by equation and purity alone, and by all else as FILE:NAME"
            label = "" if operation in judged else "recognised"
            yield label, one_line(f"{operation} as well: {named(others, 5)}; {how}", _LINE)
    yield from _without_operation(found)
    refused = list(found.get("not_recognised", ()))
    for one in refused[:most]:
        yield "not judged", one_line(f"{one['name']}: not as {one['operation']}: {one['reason']}", _LINE)
    if len(refused) > most:
        yield "", f"and {len(refused) - most} more"


def inspected(found: Mapping[str, Any], domains: Mapping[str, Any]) -> Iterator[Line]:
    """Give every candidate: operations with form, readings, constants and domain; then what is not judged, and why."""
    seen: set[str] = set()
    for pin in found.get("recognised", ()):
        yield pin["operation"], one_line(_told(pin).removeprefix(f"{pin['operation']}: "), _LINE)
        if pin["operation"] not in seen:
            yield from _domain(domains.get(pin["operation"], {}))
        seen.add(pin["operation"])
    for operation in found.get("by_name", ()) if found else domains:
        yield operation, "by its name"
        yield from _domain(domains.get(operation, {}))
    for one in found.get("not_recognised", ()):
        yield "not judged", one_line(f"{one['name']}: not as {one['operation']}: {one['reason']}", _LINE)
    yield from _without_operation(found)


def _without_operation(found: Mapping[str, Any]) -> Iterator[Line]:
    """Give the names that no form knows, private helpers aside."""
    names = [name for name in found.get("unknown", ()) if not _is_private(name)]
    if names:
        yield "no operation", one_line(f"{', '.join(names)}: nothing of the contract", _LINE)


def _is_private(name: str) -> bool:
    return name.rpartition(".")[2].startswith("_")


def outside(found: Mapping[str, Any]) -> list[str]:
    """Return the names that a target offers and that were not judged, each once.

    They are outside the contract, or the second of one operation. Those that look like an operation are told by
    themselves.
    """
    judged = judged_whole(found)
    others = [pin["name"] for pin in found.get("recognised", ()) if pin not in judged]
    names = [*others, *found.get("unknown", ())]
    told = (
        {*found.get("also_judged", ())}
        | {pin["name"] for pin in judged}
        | {one["name"] for one in found.get("not_recognised", ())}
    )
    return [name for name in dict.fromkeys(names) if name not in told and not _is_private(name)]


def _domain(domain: Mapping[str, Any]) -> Iterator[Line]:
    """Give constants, precision and features, as the probe found them."""
    said = [f"{name} = {value}" for name, value in domain.get("constants", {}).items()]
    said += [f"computes {dtype} in {coarser}" for dtype, coarser in domain.get("precision", {}).items()]
    said += list(domain.get("rules", ()))
    if said:
        yield "", one_line("; ".join(said), _LINE)
    refused = list(domain.get("refused", ()))
    provided = len(domain.get("provided", ()))
    if provided or refused:
        without = f"; without {named(refused, 5)}" if refused else ""
        yield "", one_line(f"{provided} features provided{without}", _LINE)


def judged_whole(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the pins that are judged by all rows: the first of each operation that the target has not by its name."""
    first: dict[str, Mapping[str, Any]] = {}
    for pin in found.get("recognised", ()):
        if pin["operation"] not in found.get("by_name", ()):
            first.setdefault(pin["operation"], pin)
    return list(first.values())


def _told(pin: Mapping[str, Any]) -> str:
    said = f"{pin['operation']}: {pin['name'] or 'the module'} as {pin['form']}"
    if pin["readings"]:
        said += f" ({', '.join(f'{name} {value}' for name, value in pin['readings'].items())})"
    readings = {**{name: pin["readings"][name] for name in pin["deviations"]}, **pin["conventions"]}
    if readings:
        said += "; not the contract's: " + ", ".join(f"{name} {value}" for name, value in readings.items())
    if not pin["everywhere"]:
        said += "; no reading is right everywhere: judged by the nearest"
    return said + "".join(f"; {one}" for one in pin["told"])


def deviations(found: Mapping[str, Any]) -> str:
    """Return a line for the verdict: the readings that are not the contract's, and where none fits; else nothing."""
    said = []
    for pin in judged_whole(found):
        readings = [f"{name} {pin['readings'][name]}" for name in pin["deviations"]]
        readings += [f"{key} {value}" for key, value in pin["conventions"].items()]
        if not pin["everywhere"]:
            readings.append("the nearest reading")
        if readings:
            said.append(f"{pin['operation']} by {', '.join(readings)}")
    return f"Read as recognised: {'; '.join(said)}" if said else ""
