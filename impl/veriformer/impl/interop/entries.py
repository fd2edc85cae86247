"""Correspondence of another library's weights to ours: one description for both directions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks

State = Mapping[str, Tensor]


@dataclass(frozen=True)
class Entry:
    """Tensor of ours, made of one or more of theirs side by side along the last axis.

    `transposed` says that theirs are `[n_out, n_in]`, as in `torch.nn.Linear`. `sizes` are the widths of the parts,
    where there is more than one.
    """

    ours: str
    theirs: tuple[str, ...]
    transposed: bool = False
    sizes: tuple[int, ...] = ()

    def load(self, state: State) -> Tensor:
        """Return our tensor from their state."""
        for name in self.theirs:
            if name not in state:
                checks.raise_for("state", f"an entry {name}", "none", "is it the state of this family of models?")
        parts = [state[name].mT if self.transposed else state[name] for name in self.theirs]
        return torch.cat(parts, -1) if len(parts) > 1 else parts[0].clone()

    def save(self, ours: Tensor) -> dict[str, Tensor]:
        """Return their tensors from ours."""
        parts = torch.split(ours, list(self.sizes), -1) if self.sizes else (ours,)
        turned = (part.mT if self.transposed else part for part in parts)
        return {name: part.contiguous() for name, part in zip(self.theirs, turned, strict=True)}


def linear(
    ours: str, *theirs: str, bias: bool, sizes: tuple[int, ...] = (), transposed: bool = True
) -> Iterable[Entry]:
    """Give the entries of a projection, made of one or more `torch.nn.Linear`."""
    yield Entry(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), transposed, sizes)
    if bias:
        yield Entry(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), False, sizes)


def norm(ours: str, theirs: str, *, bias: bool) -> Iterable[Entry]:
    """Give the entries of a norm."""
    yield Entry(f"{ours}.weight", (f"{theirs}.weight",))
    if bias:
        yield Entry(f"{ours}.bias", (f"{theirs}.bias",))


def plain(ours: str, theirs: str) -> Entry:
    """Give the entry of a tensor that is the same on both sides."""
    return Entry(ours, (theirs,))
