"""Code that was not written for the contract as a target: recognised, or bound again by its pins."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.forms.binding import implementation
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.meanings import WORD
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.candidates import find_candidate
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.by_name import by_name, other_names
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS, ClaimsWarning, is_constant, read_claims
from veriformer.verify.targets.target import Target
from veriformer.verify.targets.watch import Watch, watch_of


def target_of(found: object, spec: str, lines: str, recognised: Mapping[str, Any] | None) -> Target:
    """Return the operations that were recognised in it, under the contract's names, beside those that it offers by
    name.

    lines: Python lines that call a loader, up to its argument ``recognised``, which is added with the pins. Raises
    LookupError where a pin names what is not there.
    """
    claims = getattr(found, "CLAIMS", None)
    stated = claims if isinstance(claims, Mapping) else {}
    conventions = stated.get("conventions") if isinstance(stated.get("conventions"), Mapping) else {}
    pinned = {key: str(value) for key, value in (conventions or {}).items() if _is_reading(key)}
    stated = {**stated, "conventions": {k: v for k, v in (conventions or {}).items() if k not in pinned}}
    named = by_name(found) if isinstance(found, ModuleType) else []
    if not recognised:
        among = other_names(found, named) if named and isinstance(found, ModuleType) else None
        recognised = recognise(found, {**pinned, **stated["conventions"]}, among).to_dict()
        recognised |= {"by_name": named} if named else {}
    _warn_of_unused(pinned, recognised)
    pins = [pin for pin in map(Pin.from_dict, recognised["recognised"]) if pin.operation not in named]
    pairs = [(pin, find_candidate(found, pin.name)) for pin in pins]
    watch = _watch_of(found, pairs, named)
    bound = implementation(pairs, spec, stated, contextlib.nullcontext if watch is None else watch.watching)
    vars(bound).update({name: getattr(found, name) for name in named})
    first = {pin.operation: pin.to_dict() for pin in reversed(pins)}
    shown = {"recognised": list(first.values())}
    return Target(
        spec=spec,
        implementation=bound,
        claims=read_claims(getattr(bound, "CLAIMS", None)),
        version=_version(found),
        loader=f"{lines}{shown!r}).implementation",
        recognised=dict(recognised),
        source=found,
        watch=watch,
    )


def _watch_of(found: object, pairs: Sequence[tuple[Pin, Candidate]], named: Iterable[str]) -> Watch | None:
    """Return the watch of the recognised code, of several candidates of one operation the first, and of named
    operations."""
    watch = watch_of(found)
    if watch is not None:
        for pin, candidate in pairs:
            if pin.operation not in watch.roots:
                watch.add_root(pin.operation, candidate.module if candidate.is_module else candidate.thing)
                words = (name.removeprefix(WORD) for name in pin.readings if name.startswith(WORD))
                watch.chosen[pin.operation] = frozenset(words)
        for name in named:
            watch.add_root(name, getattr(found, name))
    return watch


def _is_reading(key: str) -> bool:
    """Return whether a claimed convention pins how code is called: ``attention.form``, ``attention.layout``."""
    return key.partition(".")[0] in POSITIONAL and key not in KNOWN_CONVENTIONS and not is_constant(key)


def _warn_of_unused(pinned: Mapping[str, str], recognised: Mapping[str, Any]) -> None:
    used = {f"{pin['operation']}.{name}" for pin in recognised["recognised"] for name in (*pin["readings"], "form")}
    for key in pinned.keys() - used:
        warnings.warn(
            f"CLAIMS['conventions'][{key!r}]: nothing was recognised that has it", ClaimsWarning, stacklevel=2
        )


def _version(found: object) -> str | None:
    module = inspect.getmodule(found)
    version = getattr(module, "__version__", None)
    return version if isinstance(version, str) else None
