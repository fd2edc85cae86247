"""The linear maps that a module holds, in the order in which it registers them, and its other parameters.

A linear map of another kind of module is recognised by behaviour, whatever its parameters are called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.form import NotOffered, OtherParts, Unfit

HELD = ("[n_in, n_out]", "[n_out, n_in]")
"""Orientation of a matrix that is a parameter by itself: no name says it."""

OUTWARD = frozenset(("o", "out", "output"))
"""Words of the map that joins what heads give."""

_PARAMETERS = frozenset(("w", "b", "weight", "weights", "bias", "biases", "kernel", "matrix", "mat"))

_SEEN: WeakKeyDictionary[nn.Module, tuple[str, str, bool] | None] = WeakKeyDictionary()


@dataclass(frozen=True)
class Linear:
    """name: of the submodule. weight, bias: names of its parameters, the bias empty where there is none.

    transposed: whether the weight is held as ``[n_out, n_in]``, as ``torch.nn.Linear`` does. shape: that of the weight,
    which for a convolution over one position has an axis more. by_head: whether it is held as ``[H, n_in, n_out / H]``.
    """

    name: str
    weight: str
    bias: str
    n_in: int
    n_out: int
    transposed: bool
    shape: tuple[int, ...]
    by_head: bool = False

    @property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(word for part in self.name.split(".") for word in words(part))

    def tensors(self, weight: Tensor, bias: Tensor | None = None) -> dict[str, Tensor]:
        """Return its parameters for a weight ``[n_in, n_out]``, filled up with zeros where the module's are larger.

        Raises NotOffered where the weight is larger than the module's.
        """
        if weight.shape[0] > self.n_in or weight.shape[1] > self.n_out:
            raise NotOffered(f"{self.name}: the module has {self.n_in} × {self.n_out}, got {tuple(weight.shape)}")
        whole = nn.functional.pad(weight, (0, self.n_out - weight.shape[1], 0, self.n_in - weight.shape[0]))
        found = {self.weight: self._as_held(whole)}
        if self.bias:
            none = torch.zeros(self.n_out, dtype=weight.dtype)
            given = none if bias is None else nn.functional.pad(bias, (0, self.n_out - bias.shape[0]))
            found[self.bias] = given.reshape(self.shape[0], -1) if self.by_head else given
        elif bias is not None and bool((bias.detach() != 0).any()):
            raise NotOffered(f"{self.name}: the module has no bias")
        return found

    def _as_held(self, whole: Tensor) -> Tensor:
        """Return a weight ``[n_in, n_out]`` as the module holds it."""
        if self.by_head:
            return whole.reshape(self.n_in, self.shape[0], -1).movedim(1, 0)
        return (whole.T if self.transposed else whole).reshape(self.shape)


def linears(module: nn.Module, held: str = HELD[0]) -> list[Linear]:
    """Return every linear map of a module. held: how those are that stand among its own parameters.

    Raises Unfit where parameters are left that are of none, OtherParts where all of these are of norms.
    """
    found, left = linears_and_rest(module, held)
    if left:
        said = f"its parameter {left[0]!r} is no weight of a linear map: in this form the operation has none else"
        owners = tuple(dict.fromkeys(name.rpartition(".")[0] for name in left))
        raise OtherParts(said, owners) if all(_is_norm(module, name) for name in owners) else Unfit(said)
    return found


def _is_norm(module: nn.Module, name: str) -> bool:
    """Return whether a part of a module is a norm, by the name of its class."""
    return bool(name) and "norm" in words(type(module.get_submodule(name)).__name__)


def linears_and_rest(module: nn.Module, held: str = HELD[0]) -> tuple[list[Linear], list[str]]:
    """Return every linear map of a module, in the order of its parameters, and the names of its other parameters."""
    found, used = [], set()
    for name, part in module.named_modules():
        one = _linear(name, part) if name else None
        if one is not None:
            found.append(one)
            used |= {one.weight, one.bias}
    own = dict(module.named_parameters())
    beside = [name for name in own if name not in used and not _has_maps(name.rpartition(".")[0], found)]
    alone = among_parameters({name: tuple(own[name].shape) for name in beside}, held)
    used |= {name for one in alone for name in (one.weight, one.bias)}
    order = list(own)
    found = sorted([*found, *alone], key=lambda one: order.index(one.weight))
    return found, [name for name in own if name not in used]


def _has_maps(owner: str, found: list[Linear]) -> bool:
    """Return whether a module has linear maps among its submodules: a matrix beside them has another meaning, as a
    table."""
    return any(not owner or one.name.startswith(f"{owner}.") for one in found)


def is_held_alone(part: Linear) -> bool:
    """Return whether a map is a parameter by itself, and not a module's: then its orientation is a matter of
    reading."""
    return part.name == part.weight and len(part.shape) == 2


def among_parameters(shapes: Mapping[str, tuple[int, ...]], held: str) -> list[Linear]:
    """Return the linear maps among parameters that are of no linear submodule: matrices, or one matrix for each head.

    A vector (for each head one) is the bias of the matrix whose name differs from its by no more than that. shapes: by
    name.
    """
    biases = {_stem(name): name for name, shape in shapes.items() if len(shape) < 3 and _is_bias(name)}
    found = []
    for name, shape in shapes.items():
        if len(shape) not in (2, 3) or name in biases.values():
            continue
        out = len(shape) == 3 and bool(words_of_map(name) & OUTWARD)
        by_head = len(shape) == 3 and not out
        whole = (shape[1], shape[0] * shape[2]) if by_head else (shape[0] * shape[1], shape[2]) if out else shape
        bias = biases.get(_stem(name), "")
        transposed = len(shape) == 2 and held == HELD[1]
        if bias and len(shape) == 2 and shape[0] != shape[1]:  # it is as long as the result is wide
            transposed = math.prod(shapes[bias]) == shape[0]
        n_in, n_out = whole[::-1] if transposed else whole
        bias = bias if bias and math.prod(shapes[bias]) == n_out else ""
        found.append(Linear(name, name, bias, n_in, n_out, transposed, shape, by_head))
    return found


def words_of_map(name: str) -> frozenset[str]:
    """Return the words of a parameter's name without those that say that it is one."""
    short = (re.sub(r"^[wb](?=\w{1,2}$)", "", word) for word in words(name.rpartition(".")[2]))
    return frozenset(word for word in short if word not in _PARAMETERS)


def _stem(name: str) -> tuple[str, frozenset[str]]:
    return name.rpartition(".")[0], words_of_map(name)


def _is_bias(name: str) -> bool:
    return any(word in ("b", "bias", "biases") or re.fullmatch(r"b\w{1,2}", word) for word in words(name))


def _linear(name: str, part: nn.Module) -> Linear | None:
    """Return a submodule as a linear map: one of a library's, or one that turns out to be one; None where it is
    none.
    """
    own = dict(part.named_parameters(recurse=False))
    known = isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d)
    if "weight" in own and (known or type(part).__name__ == "Conv1D"):
        weight, bias, transposed = own["weight"], "bias" if own.get("bias") is not None else "", known
        if any(size != 1 for size in weight.shape[2:]) or own.keys() - {"weight", "bias"}:
            return None
    else:
        names = _linear_by_behaviour(part)
        return None if names is None else _map(name, own, names)
    return _map(name, own, ("weight", bias, transposed))


def _map(name: str, own: Mapping[str, Tensor], names: tuple[str, str, bool]) -> Linear:
    weight, bias, transposed = names
    shape = tuple(own[weight].shape)
    n_out, n_in = shape[:2] if transposed else shape[:2][::-1]
    return Linear(name, f"{name}.{weight}", f"{name}.{bias}" if bias else "", n_in, n_out, transposed, shape)


def by_words(parts: Sequence[Linear], names: Mapping[str, frozenset[str]]) -> dict[str, Linear]:
    """Return, by role, the linear map with one of the role's words in its name, where exactly one has."""
    found = {}
    for role, known in names.items():
        members = [part for part in parts if part.words & known]
        if len(members) == 1:
            found[role] = members[0]
    return found


def _linear_by_behaviour(part: nn.Module) -> tuple[str, str, bool] | None:
    """Return the names of weight and bias of a module with these alone, and whether it is held as ``[n_out, n_in]``.

    It is a linear map if it maps unit vectors to the rows of its weight, or its columns, plus the bias: which no
    rounding touches. None where it computes something else.
    """
    if part not in _SEEN:
        _SEEN[part] = _as_a_linear_map(part)
    return _SEEN[part]


def _as_a_linear_map(part: nn.Module) -> tuple[str, str, bool] | None:
    own = dict(part.named_parameters(recurse=False))
    matrices = [name for name, p in own.items() if p.ndim == 2]
    vectors = [name for name, p in own.items() if p.ndim == 1]
    if len(matrices) != 1 or len(vectors) > 1 or len(own) != len(list(part.parameters())) or len(own) > 2:
        return None
    weight, bias = matrices[0], vectors[0] if vectors else ""
    draw = torch.Generator().manual_seed(0)
    drawn = {name: torch.randint(-9, 10, p.shape, generator=draw).to(p.dtype) for name, p in own.items()}
    for transposed in (True, False):
        held = drawn[weight].T if transposed else drawn[weight]
        try:
            with torch.no_grad():
                found = torch.func.functional_call(part, drawn, (torch.eye(held.shape[0], dtype=held.dtype),))
        except Exception:  # of another width, or called otherwise
            continue
        if isinstance(found, Tensor) and torch.equal(found, held + drawn[bias] if bias else held):
            return weight, bias, transposed
    return None
