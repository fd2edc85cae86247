"""Subjects of a comparison, as they come out of a file: a function, a module, or a problem of KernelBench.

Prepared cases lie on disk; objects are built once for all cases of the same arguments and weights.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.drawing import Inputs
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.locating import locate
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
        """Return ``get_inputs`` or ``get_init_inputs`` of the same file."""
        found = self.beside.get(name)
        return found if callable(found) else None

    def make(self, init: tuple[list[Any], dict[str, Any]], seed: int) -> Callable[..., Any]:
        """Make an object to call. init: the arguments of its class; seed: of the parameters that it draws."""
        seed_everything(seed)
        if self.built:
            made: Callable[..., Any] = self.thing(*init[0], **init[1])
            return made
        return copy.deepcopy(self.thing) if isinstance(self.thing, nn.Module) else self.thing


def load_subject(spec: str, classes: tuple[str, ...]) -> Subject:
    """Load a function, a class, a module, or a file that has one of these classes or one public thing at all.

    Raises TargetError where the word stands for nothing that can be called, or for several things.
    """
    found, loader = locate(spec)
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


def seed_everything(seed: int) -> None:
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
    """Return the globals of the file that defines a target."""
    for holder in (thing, getattr(thing, "__init__", None), getattr(thing, "forward", None), type(thing).__call__):
        names = getattr(inspect.unwrap(holder), "__globals__", None) if callable(holder) else None
        if names is not None and names.get("__name__", "").partition(".")[0] != "torch":
            return dict(names)
    return {}


def state(made: Any) -> dict[str, torch.Tensor]:
    """Return a module's tensors by name, each once; nothing for other objects."""
    return dict(_named_tensors(made)) if isinstance(made, nn.Module) else {}


def _named_tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def pair_tensors(mine: Mapping[str, torch.Tensor], theirs: Mapping[str, torch.Tensor]) -> dict[str, str] | None:
    """Pair the tensors of two modules by name, else by equal values from one seed; None where neither pairs them all.

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


@dataclass(frozen=True)
class Prepared:
    """A case with its arguments. key: of the weights. init: the arguments of the class."""

    name: str
    case: Case
    inputs: Inputs
    init: Inputs
    key: str

    @classmethod
    def load(cls, folder: Path, name: str, device: str) -> Prepared:
        """Read it; the tensors are new ones."""
        held = torch.load(folder / f"{name}.pt", map_location=device, weights_only=False)
        return cls(name, Case.from_dict(held["case"]), held["inputs"], held["init"], held["key"])

    def save(self, folder: Path) -> None:
        """Write it."""
        held = {"case": self.case.to_dict(), "inputs": self.inputs, "init": self.init, "key": self.key}
        torch.save(held, folder / f"{self.name}.pt")


@dataclass
class Objects:
    """Objects of a subject, keyed by the arguments that they are built from.

    fresh: build a new one for every call. note: how weights came from the one to the other, for the record.
    """

    subject: Subject
    folder: Path
    device: str = "cpu"
    fresh: bool = False
    note: str = ""
    pairs: dict[str, dict[str, str] | None] = field(default_factory=dict)
    modes: dict[str, list[bool]] = field(default_factory=dict)
    made: dict[str, tuple[Callable[..., Any], dict[str, torch.Tensor]]] = field(default_factory=dict)

    def of(self, prepared: Prepared) -> Callable[..., Any]:
        """Return the object for this case, with its weights, statistics and mode set."""
        key = prepared.key
        if self.fresh or key not in self.made:
            self.made[key] = self._build(prepared)
            made = self.made[key][0]
            self.modes[key] = [part.training for part in made.modules()] if isinstance(made, nn.Module) else []
        made, held = self.made[key]
        if isinstance(made, nn.Module):
            now = state(made)
            with torch.no_grad():
                for name, x in held.items():
                    if name in now and not torch.equal(now[name], x):
                        now[name].copy_(x)
            for module, training in zip(made.modules(), self.modes[key], strict=True):
                module.training = training if prepared.case.mode == "given" else prepared.case.mode == "train"
            made.zero_grad(set_to_none=True)
        return made

    def _build(self, prepared: Prepared) -> tuple[Callable[..., Any], dict[str, torch.Tensor]]:
        made = self.subject.make(prepared.init, prepared.case.seed if not prepared.case.drawn else 0)
        if not isinstance(made, nn.Module):
            return made, {}
        weights = torch.load(self.folder / f"weights {prepared.key}.pt", weights_only=True)
        pairs = self.pairs[prepared.key] = pair_tensors(weights["built"], state(made))
        if prepared.case.dtype:
            made = made.to(getattr(torch, prepared.case.dtype))
        made = made.to(self.device)
        if pairs is None:
            self.note = "weights come from the same seed, since their names and shapes differ"
        else:
            give(made, weights["used"], pairs)
        return made, {name: x.detach().clone() for name, x in state(made).items()}


def give(made: nn.Module, weights: Mapping[str, torch.Tensor], pairs: Mapping[str, str]) -> None:
    """Copy weights into a module by the names on both sides."""
    held = state(made)
    with torch.no_grad():
        for mine, theirs in pairs.items():
            with contextlib.suppress(RuntimeError):  # a buffer that is expanded holds nothing of its own
                held[theirs].copy_(weights[mine])
