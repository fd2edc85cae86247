"""Candidates: public functions and classes that may be operations."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import Any

from torch import nn

from veriformer.verify.forms.meanings import (
    BUILT,
    CALLED,
    WITHOUT,
    Meanings,
    Parameters,
    rename_arguments,
    rename_parameters,
    with_renamed_arguments,
)


@dataclass(frozen=True)
class Candidate:
    """name: its path within its module, such as ``RMSNorm``. thing: a function, a class, an object or the module
    itself.

    module: where it was found, so that its siblings can be asked; None where nothing is known of it. meanings: what the
    arguments are whose names are not known, as somebody found out or says.
    """

    name: str
    thing: Any
    module: ModuleType | None = None
    meanings: Meanings = ()

    def read_as(self, meanings: Meanings) -> Candidate:
        """Return the candidate with further arguments that are known by another name, or given a value."""
        thing = self.thing
        if not meanings:
            return self
        if not self.is_class and not self.is_module:
            thing = with_renamed_arguments(thing, meanings, _parameters(thing))
        return replace(self, thing=thing, meanings=(*self.meanings, *meanings))

    def make(self, **arguments: Any) -> Any:
        """Return an instance from these arguments of ``constructor``, to be called by the names in ``parameters``."""
        _MADE_WITH.setdefault((self.thing, self.meanings), set()).update(arguments)
        made = self.thing(**rename_arguments(arguments, self.meanings, BUILT, _parameters(self.thing)))
        for name, _ in self.meanings:
            if name.startswith(WITHOUT):
                _leave_out(made, name.removeprefix(WITHOUT))
        if isinstance(made, nn.Module) and any(name.startswith(CALLED) for name, _ in self.meanings):
            made.forward = with_renamed_arguments(made.forward, self.meanings, _parameters(made.forward))
        return made

    def made_with(self) -> frozenset[str]:
        """Return the names of the arguments that instances were made from until now."""
        return frozenset(_MADE_WITH.get((self.thing, self.meanings), ())) if self.is_class else frozenset()

    @property
    def is_function(self) -> bool:
        """True if it is called as it is, and holds nothing."""
        return inspect.isroutine(self.thing) or (callable(self.thing) and not (self.is_class or self.is_module))

    @property
    def is_class(self) -> bool:
        """True if it must be built first."""
        return inspect.isclass(self.thing)

    @property
    def is_module(self) -> bool:
        """True if it is a file or a package, or an instance of a neural network."""
        return isinstance(self.thing, ModuleType | nn.Module)

    @property
    def is_network(self) -> bool:
        """True if it is a class of ``torch.nn.Module``."""
        return self.is_class and issubclass(self.thing, nn.Module)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of its name in small letters: ``CausalSelfAttention`` gives causal, self, attention."""
        return words(self.name.rpartition(".")[2])

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters of a call: of the function, or of the class's ``forward`` (or ``__call__``) without ``self``."""
        if not self.is_class:
            return _parameters(self.thing)
        return self.parameters_of("forward") or self.parameters_of("__call__")

    @cached_property
    def constructor(self) -> Parameters:
        """Parameters of the class without ``self``; those that it hands on to a class of its file are taken by name."""
        return rename_parameters(_built_from(self.thing), self.meanings, BUILT) if self.is_class else {}

    def parameters_of(self, method: str) -> Parameters:
        """Return the parameters of a method of the class, without ``self``; empty where it is not the class's own."""
        function = inspect.getattr_static(self.thing, method, None)
        if function is None or (method in vars(nn.Module) and function is vars(nn.Module)[method]):
            return {}
        if isinstance(function, staticmethod):
            return rename_parameters(_parameters(function.__func__), self.meanings, CALLED)
        if not inspect.isfunction(function):
            return {}
        found = list(_parameters(function).items())
        return rename_parameters(dict(found[1:]), self.meanings, CALLED)

    def siblings(self) -> dict[str, Any]:
        """Return the other public things of its module, those that it imports included."""
        own = {} if self.module is None else vars(self.module)
        return {name: x for name, x in own.items() if name[:2] != "__" and name != self.name}


_MADE_WITH: dict[Any, set[str]] = {}


@functools.cache
def words(name: str) -> tuple[str, ...]:
    """Return the words of an identifier in small letters; of longer ones without the number at their end."""
    apart = re.sub(r"(?<=\w)(MLP|MoE|FFN|MHA|GQA)(?=$|[A-Z])", r" \1", name.replace("_", " ").replace("MoE", "MOE"))
    apart = re.sub(r"RoPE|(Si|Ge)L[Uu](?=$|[A-Z ])", lambda found: found[0].capitalize(), apart)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", apart)
    return tuple(re.sub(r"(?<=[a-z]{3})\d+$", "", word) for word in spaced.lower().split())


def _built_from(kind: type) -> dict[str, inspect.Parameter]:
    found = _parameters(kind)
    for base in inspect.getmro(kind)[1:]:
        if not any(p.kind is p.VAR_KEYWORD for p in found.values()) or base.__module__ != kind.__module__:
            break
        handed_on = list(_parameters(vars(base).get("__init__")).values())[1:]
        own = {name: p for name, p in found.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        found = own | {p.name: p.replace(kind=_handed(p)) for p in handed_on if p.name not in own}
    return found


def _handed(p: inspect.Parameter) -> Any:
    return p.KEYWORD_ONLY if p.kind is p.POSITIONAL_OR_KEYWORD else p.kind


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (ValueError, TypeError):  # a built-in without one
        return {}


def _leave_out(module: nn.Module, path: str) -> None:
    """Put the identity in the place of a part of a module."""
    owner, _, name = path.rpartition(".")
    setattr(module.get_submodule(owner), name, nn.Identity())
