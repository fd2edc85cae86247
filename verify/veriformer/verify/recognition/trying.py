"""Parameters that no reading varies, tried at other values that the code itself knows."""

from __future__ import annotations

import copy
import dataclasses
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

from hypothesis.errors import UnsatisfiedAssumption

from veriformer.verify.domain.probe import Probe
from veriformer.verify.domain.sample import Sample
from veriformer.verify.forms.adapted import candidate_of
from veriformer.verify.forms.afresh import surroundings, with_parameter
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.configs import config_class
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.registry import form_named
from veriformer.verify.judging.judge import Violation
from veriformer.verify.recognition.candidates import find_candidate
from veriformer.verify.recognition.nearest import choices_of
from veriformer.verify.targets.target import Target
from veriformer.verify.targets.values import others
from veriformer.verify.targets.watch import BUILT, MANY, Parameter, Seen, Watch, in_words

SAMPLES = 3
"""Plain calls, and drawn ones, on which a value is tried."""

READINGS = 6
"""Readings beside its own by which code is tried with another value."""

SECONDS = 8.0
"""Processor time after which no further value of an operation is tried."""


def try_others(probe: Probe) -> None:
    """Give the parameters that were always given one value another one, on calls that were right; and call the code as
    if it stood in other surroundings.

    Where all of them are right as well, the parameter was varied, and what ran with it has run. Where one is not, what
    the parameter does is not known.
    """
    watch, operation = probe.target.watch, probe.operation.name
    samples = _right(probe) if watch is not None else []
    seen = watch.seen.get(operation) if watch is not None else None
    if watch is None or seen is None or not samples:
        return
    code = _code_of(probe.target, operation)
    until = time.process_time() + SECONDS
    for parameter, words in list(seen.values.items()):
        if MANY in words:
            continue
        one = next(iter(words)) if len(words) == 1 else ""
        values = others(parameter[1], one, watch.files, built=parameter[0] == BUILT) if one else []
        for value in [*values, *_unused_none(code.candidate, parameter, words)]:
            if time.process_time() > until:
                return
            other = with_parameter(code.candidate, built=parameter[0] == BUILT, name=parameter[1], value=value)
            found = _run_changed(_Try(probe, code, other, samples), watch)
            if found is not None and _was_given(parameter, value, found):
                seen.add(found)
    for changed in surroundings(code.candidate, seen.names):
        found = _run_changed(_Try(probe, code, changed, samples), watch) if time.process_time() < until else None
        if found is not None:
            seen.add(found)


def _unused_none(candidate: Candidate, parameter: Parameter, words: Collection[str]) -> list[None]:
    """Return [None] if None is the default of a parameter or configuration entry, and was in no call; else nothing."""
    name, _, entry = parameter[1].partition(".")
    listed = candidate.constructor if parameter[0] == BUILT else candidate.parameters
    if name not in listed or "None" in words:
        return []
    p = listed[name]
    if not entry:
        return [None] if p.default is None else []
    kind = config_class(candidate, p)
    fields = {one.name: one.default for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else {}
    return [None] if fields.get(entry, name) is None else []


@dataclass(frozen=True)
class _Code:
    """A candidate, and what makes an operation of it: by its reading first, and then by others."""

    candidate: Candidate
    bind: Callable[[Candidate], Iterator[Any]]


@dataclass(frozen=True)
class _Try:
    """changed: a context in which the candidate that it gives is another one."""

    probe: Probe
    code: _Code
    changed: AbstractContextManager[Candidate]
    samples: list[Sample]


def _right(probe: Probe) -> list[Sample]:
    """Return a few calls in one dtype that were answered right."""
    for dtype, plain in probe.plain.items():
        drawn = [sample for sample in probe.drawn if sample.trial.row_dtype == dtype]
        few = [*plain[:SAMPLES], *drawn[:SAMPLES]]
        found = [sample for sample in few if _fits(probe, sample)]
        if found:
            return found
    return []


def _fits(probe: Probe, sample: Sample) -> bool:
    dtype = sample.trial.row_dtype
    return sample.fits(probe.operation, probe.precision.get(dtype, dtype), probe.constants)


def _code_of(target: Target, operation: str) -> _Code:
    pins = [Pin.from_dict(entry) for entry in target.recognised.get("recognised", ())]
    pin = next((one for one in pins if one.operation == operation), None)
    if pin is None or operation in target.recognised.get("by_name", ()):
        thing = target.operation(operation)
        return _Code(candidate_of(operation, thing, None), lambda candidate: iter((candidate.thing,)))
    return _Code(find_candidate(target.source, pin.name), lambda candidate: _read(pin, candidate))


def _read(pin: Pin, candidate: Candidate) -> Iterator[Any]:
    """Yield the operation by its reading, then by the others of its form: what a flag changes may be one of these."""
    yield bound(pin, candidate)
    match = form_named(pin.form).match(candidate)
    own = {name: pin.readings[name] for name in pin.readings if match is not None and name in match.readings}
    choices = choices_of(match.readings, {}, "") if match is not None else iter(())
    for choice in islice((one for one in choices if one != own), READINGS):
        yield bound(replace(pin, readings={**pin.readings, **choice}), candidate)


def _run_changed(trying: _Try, watch: Watch) -> Seen | None:
    """Return what ran of the changed code, where every call was right; None where not."""
    operation = trying.probe.operation.name
    kept = watch.seen.pop(operation)
    try:
        with warnings.catch_warnings(), trying.changed as candidate:
            warnings.simplefilter("ignore")
            functions = trying.code.bind(candidate)
            while not _agrees(trying, functions):
                watch.seen.pop(operation, None)
        return watch.seen.get(operation, Seen())
    except Exception:  # no other reading is left, or it cannot be built so
        return None
    finally:
        watch.seen[operation] = kept


def _was_given(parameter: Parameter, value: Any, found: Seen) -> bool:
    """Return whether the code was given this value: its own calls may leave a parameter out."""
    words = found.values.get(parameter, set())
    replaced = value is None and "." in parameter[1] and bool(words)  # a configuration makes another value of none
    return in_words(value) in words or replaced


def _agrees(trying: _Try, functions: Iterator[Any]) -> bool:
    """Return whether every call is right by the next reading. Raises StopIteration where there is none."""
    probe, operation = trying.probe, trying.probe.operation.name
    if probe.target.watch is not None:
        probe.target.watch.begin()
    try:
        with probe.target.watching(operation):
            function = next(functions)
        changed = SimpleNamespace(**{**vars(probe.target.implementation), operation: function})
        target = replace(probe.target, implementation=changed)
        held = [_holds(probe, sample, target) for sample in trying.samples]
        return any(held) and False not in held
    except StopIteration:
        raise
    except Exception:  # it cannot be bound or called so
        return False


def _holds(probe: Probe, sample: Sample, target: Target) -> bool | None:
    """Return whether a call is right; None where the form has no such call by this reading."""
    trial = copy.copy(sample.trial)
    trial.target, trial.calls, trial.unsupported = target, [], set()
    try:
        outcome = trial.call(sample.arguments)
    except UnsatisfiedAssumption:  # with this value it takes no such argument
        return None
    except Violation as violation:
        return None if isinstance(violation.__cause__, NotOffered) else False
    return _fits(probe, Sample(trial, sample.arguments, outcome))
