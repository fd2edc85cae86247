"""The linear maps that a module holds, in the order in which it registers them, and its other parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.form import NotOffered, Unfit


@dataclass(frozen=True)
class Linear:
    """name: of the submodule. weight, bias: names of its parameters, the bias empty where there is none.

    transposed: whether the weight is held as ``[n_out, n_in]``, as ``torch.nn.Linear`` does. shape: that of the weight,
    which for a convolution over one position has an axis more.
    """

    name: str
    weight: str
    bias: str
    n_in: int
    n_out: int
    transposed: bool
    shape: tuple[int, ...]

    @property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(word for part in self.name.split(".") for word in words(part))

    def tensors(self, weight: Tensor, bias: Tensor | None = None) -> dict[str, Tensor]:
        """Its parameters for a weight ``[n_in, n_out]``, filled up with zeros where the module's are larger.

        Raises NotOffered where the weight is larger than the module's.
        """
        if weight.shape[0] > self.n_in or weight.shape[1] > self.n_out:
            raise NotOffered(f"{self.name}: the module has {self.n_in} × {self.n_out}, got {tuple(weight.shape)}")
        whole = nn.functional.pad(weight, (0, self.n_out - weight.shape[1], 0, self.n_in - weight.shape[0]))
        found = {self.weight: (whole.T if self.transposed else whole).reshape(self.shape)}
        if self.bias:
            none = torch.zeros(self.n_out, dtype=weight.dtype)
            given = none if bias is None else nn.functional.pad(bias, (0, self.n_out - bias.shape[0]))
            found[self.bias] = given
        elif bias is not None and bool((bias.detach() != 0).any()):
            raise NotOffered(f"{self.name}: the module has no bias")
        return found


def linears(module: nn.Module) -> list[Linear]:
    """Every linear map of a module. Raises Unfit where parameters are left that are of none."""
    found, left = linears_and_rest(module)
    if left:
        raise Unfit(f"its parameter {left[0]!r} has no part in the operation")
    return found


def linears_and_rest(module: nn.Module) -> tuple[list[Linear], list[str]]:
    """Every linear map of a module, and the names of its other parameters."""
    found, used = [], set()
    for name, part in module.named_modules():
        own = dict(part.named_parameters(recurse=False))
        weight = own.get("weight")
        transposed = isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d)
        if weight is None or not (transposed or type(part).__name__ == "Conv1D"):
            continue
        if any(size != 1 for size in weight.shape[2:]) or own.keys() - {"weight", "bias"}:
            continue
        n_out, n_in = weight.shape[:2] if transposed else weight.shape[:2][::-1]
        bias = f"{name}.bias" if own.get("bias") is not None else ""
        found.append(Linear(name, f"{name}.weight", bias, n_in, n_out, transposed, tuple(weight.shape)))
        used |= {f"{name}.weight", bias}
    return found, [name for name, _ in module.named_parameters() if name not in used]


def by_words(parts: Sequence[Linear], names: Mapping[str, frozenset[str]]) -> dict[str, Linear]:
    """By role the linear map that has one of the role's words in its name, where exactly one has."""
    found = {}
    for role, known in names.items():
        members = [part for part in parts if part.words & known]
        if len(members) == 1:
            found[role] = members[0]
    return found
