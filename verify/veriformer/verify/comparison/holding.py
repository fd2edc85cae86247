"""Prepared cases on disk, and objects that are built once for all cases of the same arguments and weights."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.drawing import Inputs
from veriformer.verify.comparison.subject import Subject, pairing, state


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
    """Objects of one subject, by what they are built from.

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
        """The object for this case, with its weights, statistics and mode set."""
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
        pairs = self.pairs[prepared.key] = pairing(weights["built"], state(made))
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
