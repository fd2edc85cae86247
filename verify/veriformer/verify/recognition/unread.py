"""Parameters that no reading of a candidate explains, and candidates named as an operation that no form reads.

A parameter is unexplained that the form never gives, with what another value of it does. Of code that is named like an
operation, it has to be said that it is not judged.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.meanings import BUILT, CALLED, IDENTITY, VALUES, WITHOUT
from veriformer.verify.forms.recording import open_parameters, record_parameters, with_default
from veriformer.verify.forms.rotation import STARTS
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.recognition.nearest import OPERATION, READINGS, Reading, choices_of, conventions_of, tenable

MOST = 8
"""Maximum number of parameters that are tried."""

NUMBERS = 4096
"""Maximum number of scalars of a call: another value of a parameter may make code compute all pairs of pairs of them.
"""

PUBLISHED = {"num_cycles": 0.5, "last_epoch": -1, "filter_value": -math.inf}
"""Usual names of further parameters, by the value that leaves the published formula as it is."""

OF_RUNNING = frozenset(("device", "dtype", "verbose", "name", "inplace", "out"))
"""Usual names of parameters that say where and how a result is made, and are no part of a formula."""

_MASKS_AND_CACHES = {"mask": "causal_mask", "masks": "causal_mask", "cache": "kv_cache", "kvcache": "kv_cache"}
"""By a word of a name, the operation by which something of that name would be judged."""

_OF_ARRAYS = {
    **dict.fromkeys(("attention", "attn"), "multi_head_attention"),
    **dict.fromkeys(("layernorm", "layer norm"), "layer_norm"),
    **dict.fromkeys(("rmsnorm", "rms norm"), "rms_norm"),
    **dict.fromkeys(("feed forward", "feedforward", "ffn", "mlp"), "feed_forward"),
    "cross entropy": "cross_entropy",
    "embedding": "token_embedding",
    "softmax": "softmax",
    "adam": "adam",
    "adamw": "adamw",
    "sgd": "gradient_descent",
}
"""By words of its name, the operation that a class over arrays of another library would be judged by."""

_COMPUTING = ("forward", "__call__", "step", "update")


def unread(found: Reading) -> tuple[str, ...]:
    """Return the names of the parameters that no call of the form gives, or that are given one value alone.

    A parameter is left out if another value of it was tried and the results were right by some convention.
    """
    meanings = found.candidate.meanings
    constant = [name for name, known in meanings if known in (*VALUES, IDENTITY) and _plain(name) not in OF_RUNNING]
    defaults = never_given(found) if found.form.judge is None else {}
    drawn = Fitting(OPERATION[found.form.operation], most=NUMBERS) if defaults else None
    tried = dict(list(defaults.items())[:MOST])
    right = {name for name, default in tried.items() if drawn is not None and _is_right(found, drawn, name, default)}
    named = (*found.match.left_out, *constant, *defaults)
    return tuple(dict.fromkeys(_plain(name) for name in named if name not in right))


def unexplained_parameters(found: Reading) -> tuple[str, ...]:
    """Return the names of the parameters that no call of the form gives, whose default switches nothing off, and of
    which another value gives other results: what such code computes is the contract's by no reading."""
    if found.form.judge is not None:
        return ()
    drawn = Fitting(OPERATION[found.form.operation], most=NUMBERS)
    given = never_given(found)
    defaults = {name: x for name, x in given.items() if not _switches_off(x) and PUBLISHED.get(_plain(name)) != x}
    some = list(defaults.items())[:MOST]
    return tuple(_plain(name) for name, default in some if _changes(found, drawn, name, default))


def never_given(found: Reading) -> dict[str, Any]:
    """Return the defaults of the parameters that no call gives; nothing where calls cannot be watched."""
    every = open_parameters(found.candidate)
    defaults = {name: x for name, x in every.items() if _plain(name) not in OF_RUNNING}
    if not defaults:
        return {}
    try:
        with record_parameters(found.candidate) as (candidate, given):
            Fitting(OPERATION[found.form.operation]).fit(found.form.bind(candidate, found.readings), found.conventions)
    except Exception:  # a form that reads the code itself, which the recording stands before
        return {}
    # What was never watched at all is made, or called, in another way: nothing is known of what that gives.
    watched = tuple(place for place in (BUILT, CALLED) if any(name.startswith(place) for name in given))
    return {name: x for name, x in defaults.items() if name not in given and name.startswith(watched)}


def _switches_off(default: Any) -> bool:
    """Return whether a default is none of a thing, no limit, or a factor or flag that leaves the formula as it is."""
    return default is None or default in (0, 1, "", (), math.inf, -math.inf)


def _others(found: Reading, default: Any) -> Iterator[Any]:
    """Yield other values of a parameter: the opposite flag, larger numbers, other words of the code."""
    if isinstance(default, bool):
        yield not default
    elif isinstance(default, int | float):
        yield 2 * default or 1
    elif isinstance(default, str):
        yield from (word for word in _words_of(found) if word != default)


def _words_of(found: Reading) -> tuple[str, ...]:
    """Return the words that the code of a function, or of a class, compares with."""
    thing = inspect.unwrap(found.candidate.thing) if not found.candidate.is_class else found.candidate.thing
    functions = vars(thing).values() if found.candidate.is_class else (thing,)
    codes = [code for code in (getattr(x, "__code__", None) for x in functions) if code is not None]
    listed = itertools.chain.from_iterable(
        x if isinstance(x, tuple) else (x,) for code in codes for x in code.co_consts
    )
    return tuple(dict.fromkeys(x for x in listed if isinstance(x, str) and x.isidentifier()))


def _vary(found: Reading, name: str, value: Any) -> Reading | None:
    candidate = with_default(found.candidate, name, value)
    return None if candidate is None else replace(found, candidate=candidate)


def _is_right(found: Reading, drawn: Fitting, name: str, default: Any) -> bool:
    """Return whether other values are taken, and results are right by some convention or reading for each that is."""
    held = []
    for value in _others(found, default):
        function = _bound(found, name, value)
        if function is not None:
            some = [drawn.holds(function, one) for one in _conventions(found)]
            if any(one is not None for one in some):
                held.append(any(some) or _is_right_otherwise(found, drawn, name, value))
    return bool(held) and all(held)


def _is_right_otherwise(found: Reading, drawn: Fitting, name: str, value: Any) -> bool:
    """Return whether a candidate is right by some reading with another value of a parameter: a flag may choose it."""
    varied = _vary(found, name, value)
    try:
        match = None if varied is None else found.form.match(varied.candidate)
        if varied is None or match is None:
            return False
        own = Fitting(OPERATION[found.form.operation], most=NUMBERS)
        conventions = list(choices_of(conventions_of(found.form, match), {}, ""))
        readings = itertools.islice(choices_of(match.readings, {}, ""), READINGS)
        functions = [found.form.bind(varied.candidate, reading) for reading in readings]
        right = (own.fit(f, one) for f, one in itertools.product(functions, conventions) if own.holds(f, one))
        first = next(right, None)
        if first is None:
            return False
        usual = drawn.fit(_bound(found, name, value), found.conventions)
        return any((fit, fit) in tenable([(usual, usual), (fit, fit)]) for fit in (first, *right))
    except Exception:  # whatever it does when it is built so
        return False


def _conventions(found: Reading) -> list[dict[str, str]]:
    return [
        dict(found.conventions),
        *choices_of(conventions_of(found.form, found.match), {}, ""),
    ]


def _bound(found: Reading, name: str, value: Any) -> Any:
    varied = _vary(found, name, value)
    try:
        return None if varied is None else varied.form.bind(varied.candidate, varied.readings)
    except Exception:  # whatever it does when it is built so
        return None


def _changes(found: Reading, drawn: Fitting, name: str, default: Any) -> bool:
    """Return whether some other value of a parameter is taken and gives other results."""
    usual = found.form.bind(found.candidate, found.readings)
    functions = [_bound(found, name, value) for value in _others(found, default)]
    return any(function is not None and drawn.differs(function, usual, found.conventions) for function in functions)


def _plain(name: str) -> str:
    return name.removeprefix(BUILT).removeprefix(CALLED).removeprefix(WITHOUT)


def named_and_unread(candidate: Candidate) -> tuple[str, str] | None:
    """Return the operation that something is called by which no form reads, and why it is told; None for anything else.

    A mask, a cache, attention that is given one: who sees whom is what is most often wrong. A class over arrays, whose
    derivatives are written by hand.
    """
    if candidate.is_class and issubclass(candidate.thing, enum.Enum):
        return None
    operation = next((_MASKS_AND_CACHES[word] for word in candidate.words if word in _MASKS_AND_CACHES), None)
    said = f"no form reads it as {operation}, or as what gives one"
    if operation is None and _ATTENTION & set(candidate.words) and any(map(_tells_who_sees, candidate.parameters)):
        operation, said = "multi_head_attention", "no form reads it, with the mask or the cache that it is given"
    if operation is None and _computes_over_arrays(candidate):
        name = " ".join(candidate.words)
        operation = next((one for words, one in _OF_ARRAYS.items() if f" {words} " in f" {name} "), None)
        said = "no form reads it as a class over arrays"
    return None if operation is None else (operation, said)


def _computes_over_arrays(candidate: Candidate) -> bool:
    """Return whether a class has a call or a step of its own and is none of PyTorch's."""
    ours = candidate.is_class and not issubclass(candidate.thing, nn.Module | torch.optim.Optimizer)
    return ours and any(name in vars(candidate.thing) for name in _COMPUTING)


_ATTENTION = frozenset(("attention", "attn"))


def _tells_who_sees(parameter: str) -> bool:
    """Return whether a parameter is by its name a mask, a cache, or where the tokens behind one stand."""
    return bool(_MASKS_AND_CACHES.keys() & set(words(parameter))) or parameter in STARTS
