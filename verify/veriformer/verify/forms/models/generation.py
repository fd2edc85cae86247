"""Functions that write a text with a model, ``generate(model, idx, max_new_tokens)``: read as its own method."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.size_names import size_of

_WRITES = {"generate", "generation", "sample"}
"""Words of the names of such functions; a shorter name comes first."""

_NUMBER = {"new", "tokens", "steps"}
"""Words of the name of how many tokens are asked for."""

_MODELS = ("model", "net", "network", "lm", "gpt", "llm", "transformer", "decoder")


def generating(candidate: Candidate) -> str:
    """Return the name of the function beside a class by which its models write texts; empty where they have a method of
    their own, or there is none that asks for a model, tokens, numbers and the length of its context alone.
    """
    if callable(getattr(candidate.thing, "generate", None)):
        return ""
    found = [name for name, x in candidate.siblings().items() if inspect.isfunction(x) and _writes(name, x)]
    return min(found, key=len, default="")


def with_generate(candidate: Candidate, name: str, model: nn.Module, length: int) -> nn.Module:
    """Return the model itself, with the function of that name beside its class as its method ``generate``; without a
    name as it is.

    length: of the longest text, where the function demands it.
    """
    if name:
        function: Callable[..., Any] = candidate.siblings()[name]
        known = inspect.signature(function).parameters
        given = {key: length for key in known if _demanded(known[key]) and size_of(key) == "length"}
        own = _model_among(known)
        first = next(iter(known)) == own  # given by its name, what comes after it could be given by name alone
        ahead, beside = ((model,), {}) if first else ((), {own: model})
        vars(model)["generate"] = functools.partial(function, *ahead, **beside, **given)
        if given:
            vars(model).setdefault("context_length", length)  # which the function knows from its caller
    return model


def writes(model: nn.Module, ids: Tensor) -> None:
    """Let ``generate`` of the model go on from tokens [1, n] by two, and raise what it raises: the same names are given
    to functions that begin from a text, or that ask for more than they say."""
    generate: Any = model.generate
    number = next(key for key in inspect.signature(generate).parameters if set(words(key)) & _NUMBER)
    with torch.random.fork_rng():
        generate(ids, **{number: 2})


def _writes(name: str, function: Callable[..., Any]) -> bool:
    known = inspect.signature(function).parameters
    demanded = [key for key, p in known.items() if _demanded(p) and size_of(key) != "length"]
    own, rest = _model_among(known), [key for key in demanded if key not in _MODELS]
    start = next(iter(rest), "")
    numbers = [key for key in known if set(words(key)) & _NUMBER and key != start]
    return bool(set(words(name)) & _WRITES) and own in demanded[:2] and bool(numbers) and {*rest[1:]} <= {*numbers}


def _model_among(known: Any) -> str:
    return next((key for key in known if key in _MODELS), "")


def _demanded(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )
