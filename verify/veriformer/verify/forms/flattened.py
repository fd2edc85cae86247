"""Classes without weights as functions of their constructor's and a method's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.building import make_without_weights, method_of
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import may_be_none
from veriformer.verify.forms.frameworks import like

CALLS = ("forward", "__call__")


def flatten_class(candidate: Candidate, methods: Iterable[str] = CALLS) -> Candidate | None:
    """Return a class as one function of its constructor's and a method's arguments; None where there is no such method.

    methods: the first of these that the class has is called. A name that both have is that of the method's.
    """
    method = next((name for name in methods if candidate.is_class and candidate.parameters_of(name)), None)
    if method is None:
        return None
    taken = candidate.parameters_of(method)
    build = {name: p for name, p in candidate.constructor.items() if name not in taken and p.kind not in _MANY}
    shown = [_named_parameter(p) for p in (*build.values(), *(p for p in taken.values() if p.kind not in _MANY))]

    def function(**given: Any) -> Any:
        own = {name: value for name, value in given.items() if name in build}
        x = next((value for value in given.values() if isinstance(value, Tensor) and value.is_floating_point()), None)
        dtype = torch.get_default_dtype() if x is None else x.dtype
        rest = {name: value for name, value in given.items() if name not in own}
        if not candidate.is_network and any(isinstance(value, Tensor) for value in own.values()):

            def build_and_call(own: dict[str, Any], rest: dict[str, Any]) -> Any:
                return getattr(make_without_weights(candidate, {}, own, dtype), method)(**rest)

            return like(build_and_call, getattr(candidate.thing, method), candidate.module)(own, rest)
        return method_of(make_without_weights(candidate, {}, own, dtype), candidate, method)(**rest)

    function.__doc__ = inspect.getdoc(getattr(candidate.thing, method)) or inspect.getdoc(candidate.thing)
    function.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return replace(candidate, thing=function, meanings=())


_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _named_parameter(p: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter as keyword-only, with the default None where None is accepted and no default is given."""
    left = p.default is p.empty and may_be_none(p.annotation)
    return p.replace(kind=p.KEYWORD_ONLY, default=None if left else p.default)
