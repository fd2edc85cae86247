"""The maps of a mixture of experts: a module for each expert, or matrices of all experts in one parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.form import NotOffered, Unfit
from veriformer.verify.forms.weights import Linear, linears_and_rest

_GATE = frozenset(("gate", "g"))
_ROUTERS = frozenset(("gate", "router"))


@dataclass(frozen=True)
class Map:
    """A map of every expert. parts: by expert, where each is a module. name: of the parameter ``[E, …]`` of all, or
    of the modules, with # for the number of the expert.

    transposed: whether that is held as ``[E, n_out, n_in]``. bias: the parameter ``[E, n_out]`` of all biases.
    """

    n_in: int
    n_out: int
    parts: tuple[Linear, ...] = ()
    name: str = ""
    transposed: bool = False
    bias: str = ""

    @property
    def has_bias(self) -> bool:
        """Return whether every expert has one."""
        return all(part.bias for part in self.parts) if self.parts else bool(self.bias)

    @property
    def words(self) -> frozenset[str]:
        """The words of its name."""
        return frozenset(word for part in self.name.split(".") for word in words(part))

    def tensors(self, w: Tensor, b: Tensor | None) -> dict[str, Tensor]:
        """Return its parameters for weights ``[E, n_in, n_out]``, padded with zeros where the module's are larger."""
        if w.shape[1] > self.n_in or w.shape[2] > self.n_out:
            raise NotOffered(f"{self.name}: the module has {self.n_in} × {self.n_out}")
        if self.parts:
            return {
                name: tensor
                for i, part in enumerate(self.parts)
                for name, tensor in part.tensors(w[i], None if b is None else b[i]).items()
            }
        whole = nn.functional.pad(w, (0, self.n_out - w.shape[2], 0, self.n_in - w.shape[1]))
        found = {self.name: whole.transpose(1, 2) if self.transposed else whole}
        if self.bias:
            given = torch.zeros(w.shape[0], self.n_out, dtype=w.dtype) if b is None else b
            found[self.bias] = nn.functional.pad(given, (0, self.n_out - given.shape[1]))
        return found


@dataclass(frozen=True)
class Experts:
    """The router, the maps into the hidden layers (two of gated experts, or one that is as wide), and those out."""

    router: Linear
    into: tuple[Map, ...]
    out: Map

    @property
    def gated(self) -> bool:
        """Return whether the hidden layers are products."""
        return sum(one.n_out for one in self.into) == 2 * self.out.n_in

    @property
    def gate(self) -> str:
        """The name of the map that is the gate, where names say it; else empty."""
        own = {one.name: one for one in self.into}
        said = [name for name, one in own.items() if one.words & _GATE]
        if len(said) == 1:
            return said[0]
        last = {_last_part(name): name for name in own}
        return last["w1"] if set(last) == {"w1", "w3"} and _last_part(self.out.name) == "w2" else ""

    def tensors(
        self, router: Tensor, w1: Tensor, b1: Tensor | None, w2: Tensor, b2: Tensor | None
    ) -> dict[str, Tensor]:
        """Return the module's parameters for weights of the contract; of two maps the first is half of ``w1``."""
        found = self.router.tensors(router) | self.out.tensors(w2, b2)
        if len(self.into) == 1:
            if self.gated:
                more = self.out.n_in - w1.shape[2] // 2
                w1 = torch.cat([nn.functional.pad(w, (0, more)) for w in w1.chunk(2, 2)], 2)
            return found | self.into[0].tensors(w1, b1)
        first, second = w1.chunk(2, 2)
        return found | self.into[0].tensors(first, None) | self.into[1].tensors(second, None)


def _last_part(name: str) -> str:
    """Return the last part of a name that says something: ``w1`` of ``experts.#.w1`` and of ``w1.#``."""
    return next(part for part in reversed(name.split(".")) if part not in ("#", "weight"))


def experts_of(module: nn.Module, count: int, width: int, like: Experts | None = None) -> Experts:
    """Return the maps of a module of this many experts over this width.

    like: those of another instance, whose sizes differ all, where those of this one do not tell which map is which.
    Raises Unfit where there are others.
    """
    own = dict(module.named_parameters())
    stacked = {name: p for name, p in own.items() if p.ndim == 3 and p.shape[0] == count}
    biases = {name: p for name, p in own.items() if stacked and p.ndim == 2 and p.shape[0] == count and _is_bias(name)}
    maps, left = linears_and_rest(module)
    single = [part for part in maps if part.weight not in stacked and part.weight not in biases]
    routers = [part for part in single if part.n_out == count and part.n_in == width]
    left = [name for name in left if name not in biases and name not in stacked]
    if not routers or left:
        raise Unfit(f"its parameter {left[0]!r} is of no expert" if left else "it has no router of its experts")
    named = {like.router.name} if like is not None else {part.name for part in routers if part.words & _ROUTERS}
    router = next((part for part in routers if part.name in named), routers[0])
    others = [part for part in single if part is not router]
    if stacked and others:
        raise Unfit(f"its map {others[0].name!r} is of no expert")
    found = _read_stacked(stacked, biases, width, like) if stacked else _group_linears(others, count)
    ends = {like.out.name} if like is not None else {one.name for one in found if one.n_in != width}
    into, out = [one for one in found if one.name not in ends], [one for one in found if one.name in ends]
    if len(out) != 1 or len(into) not in (1, 2) or out[0].n_out != width:
        raise Unfit(f"it has {len(maps)} linear maps, not a router and two or three for each of {count} experts")
    experts = Experts(router, tuple(into), out[0])
    if not experts.gated and (len(into) > 1 or not (into[0].has_bias and out[0].has_bias)):
        raise Unfit("its experts are not networks of two layers with biases, and have no gate")
    return experts


def _is_bias(name: str) -> bool:
    last = name.rpartition(".")[2].lower()
    return "bias" in last or re.fullmatch(r"b\d*", last) is not None


def _read_stacked(
    stacked: Mapping[str, Tensor], biases: Mapping[str, Tensor], width: int, like: Experts | None
) -> list[Map]:
    """Return the maps that are parameters of all experts: by the sizes, or as in ``like``, how each is held."""
    known = {} if like is None else {one.name: one.transposed for one in (*like.into, like.out)}
    inner = {size for p in stacked.values() for size in p.shape[1:]} - {width}
    found = []
    for name, p in stacked.items():
        _, a, b = p.shape
        transposed = known.get(name, (b == width) == _reads_tokens(name, stacked, max(inner, default=width)))
        n_in, n_out = (b, a) if transposed else (a, b)
        bias = next((one for one, v in biases.items() if v.shape[1] == n_out and _same(one, name)), "")
        found.append(Map(n_in, n_out, name=name, transposed=transposed, bias=bias))
    return found


def _same(bias: str, weight: str) -> bool:
    digits = [re.sub(r"\D", "", name.rpartition(".")[2]) for name in (bias, weight)]
    return digits[0] == digits[1]


def _reads_tokens(name: str, stacked: Mapping[str, Tensor], widest: int) -> bool:
    """Return whether a parameter is of a map into the hidden layers: by its size, where gates and values are joined,
    else by its name, the last of several being the other one where no name says it."""
    if len(stacked) == 2:
        wide = [one for one, p in stacked.items() if widest in p.shape[1:]]
        if len(wide) == 1:
            return name == wide[0]
    outward = [one for one in stacked if re.search(r"(w2|down|out|proj)(_proj|_weight)?$", one.lower())]
    return name != (outward[0] if len(outward) == 1 else list(stacked)[-1])


def _group_linears(parts: Sequence[Linear], count: int) -> list[Map]:
    """Return a map for each place within an expert: of lists of experts, or of a list for each place."""
    for places in (0, -1):
        groups: dict[str, list[Linear]] = {}
        for part in parts:
            numbers = list(re.finditer(r"(?<=\.)\d+(?=\.|$)", part.name))
            if not numbers:
                return []
            at = numbers[places].span()
            groups.setdefault(part.name[: at[0]] + "#" + part.name[at[1] :], []).append(part)
        if all(len(members) == count for members in groups.values()):
            return [Map(m[0].n_in, m[0].n_out, tuple(m), name) for name, m in groups.items()]
    return []
