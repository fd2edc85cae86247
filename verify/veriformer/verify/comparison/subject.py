"""Subjects of a comparison, as they come out of a file: a function, a module, or a problem of KernelBench."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.locating import located
from veriformer.verify.targets.seeding import seed_generators

_COMPANIONS = ("get_inputs", "get_init_inputs")
REFERENCE, CANDIDATE = ("Model",), ("ModelNew", "Model")
"""The names of the classes in a problem of KernelBench and in its solutions."""


@dataclass(frozen=True)
class Subject:
    """Subject of a comparison.

    thing: a function, an object that can be called, a class of modules, or a module.
    beside: the names that stand in its file. loader: Python lines that bind ``target`` to what the word stands for.
    attribute: where in that the thing is, as the end of an expression.
    """

    spec: str
    thing: Any
    beside: Mapping[str, Any]
    loader: str
    attribute: str = ""

    @property
    def built(self) -> bool:
        """True if it is a class, from which objects are built."""
        return inspect.isclass(self.thing)

    @property
    def name(self) -> str:
        """Its own name."""
        return str(getattr(self.thing, "__name__", type(self.thing).__name__))

    def companion(self, name: str) -> Callable[[], Any] | None:
        """``get_inputs`` or ``get_init_inputs`` of the same file."""
        found = self.beside.get(name)
        return found if callable(found) else None

    def make(self, init: tuple[list[Any], dict[str, Any]], seed: int) -> Callable[..., Any]:
        """An object to call. init: the arguments of its class; seed: of the parameters that it draws."""
        seeded(seed)
        if self.built:
            made: Callable[..., Any] = self.thing(*init[0], **init[1])
            return made
        return copy.deepcopy(self.thing) if isinstance(self.thing, nn.Module) else self.thing


def load_subject(spec: str, classes: tuple[str, ...]) -> Subject:
    """Load a function, a class, a module, or a file that has one of these classes or one public thing at all.

    Raises TargetError where the word stands for nothing that can be called, or for several things.
    """
    found, loader = located(spec)
    if not isinstance(found, ModuleType):
        if not callable(found):
            raise TargetError(f"target {spec!r}: expected something that can be called, got {type(found).__name__}")
        return Subject(spec, found, _beside(found), loader)
    names = [name for name in classes if callable(getattr(found, name, None))][:1] or _public(found)
    if len(names) != 1:
        there = f"it has {', '.join(names[:12])}" if names else "it has none"
        raise TargetError(
            f"target {spec!r}: expected a class {' or '.join(classes)} or one public function or class, {there}; "
            f"name one as {spec}:NAME"
        )
    return Subject(spec, getattr(found, names[0]), vars(found), loader, f".{names[0]}")


def seeded(seed: int) -> None:
    """Seed every generator that code may draw from."""
    seed_generators(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the one that other people's code draws from)


def _public(module: ModuleType) -> list[str]:
    own = [
        (name, thing)
        for name, thing in vars(module).items()
        if callable(thing) and name[:1] != "_" and name not in _COMPANIONS
        if getattr(thing, "__module__", None) == module.__name__ or isinstance(thing, nn.Module)
    ]
    modules = [name for name, thing in own if inspect.isclass(thing) and issubclass(thing, nn.Module)]
    functions = [name for name, thing in own if not inspect.isclass(thing)]
    return functions if functions and not modules else modules if not functions else [*modules, *functions]


def _beside(thing: Any) -> Mapping[str, Any]:
    """The globals of the file in which a thing stands."""
    for holder in (thing, getattr(thing, "__init__", None), getattr(thing, "forward", None), type(thing).__call__):
        names = getattr(inspect.unwrap(holder), "__globals__", None) if callable(holder) else None
        if names is not None and names.get("__name__", "").partition(".")[0] != "torch":
            return dict(names)
    return {}


def state(made: Any) -> dict[str, torch.Tensor]:
    """The tensors that a module holds by name, each once; nothing of what is no module."""
    return dict(_held(made)) if isinstance(made, nn.Module) else {}


def _held(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def pairing(mine: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> dict[str, str] | None:
    """Pair the tensors of two modules: by name, else by values that the same seed made; None where neither pairs them
    all.

    mine: of the reference. theirs: of the candidate, built from the same seed.
    """
    shapes = {name: x.shape for name, x in theirs.items()}
    if all(shapes.get(name) == x.shape for name, x in mine.items()) and len(mine) == len(theirs):
        return {name: name for name in mine}
    free, found = dict(theirs), {}
    for name, x in mine.items():
        same = [other for other, y in free.items() if x.shape == y.shape and x.dtype == y.dtype and torch.equal(x, y)]
        if not same:
            return None
        found[name] = name if name in same else same[0]
        del free[found[name]]
    return found if not any(isinstance(x, nn.Parameter) for x in free.values()) else None
