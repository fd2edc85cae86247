"""What the operators of one run cost, exactly and without a clock: everything that PyTorch's dispatcher sees.

Bytes moved are those that each operator reads and writes: views move none, a broadcast axis is read once, a gather
reads what it takes. What a kernel does within itself is not seen; FLOPs of fused attention follow PyTorch's formula.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from veriformer.bench.formulas import formula, is_modelled, is_product

_UNREAD = {"copy_", "fill_", "zero_", "uniform_", "normal_", "bernoulli_", "random_", "exponential_"}
_TAKES = {"embedding", "gather", "index", "index_select", "take", "take_along_dim"}
_PUTS = {"index_put_", "index_copy_", "scatter_", "index_fill_", "_index_put_impl_"}
_EMPTY = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"}


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts while it is entered. held: tensors that the caller has before; others are found as they come in."""

    def __init__(self, held: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.modelled: set[str] = set()
        self.uncounted: set[str] = set()
        self.allocations = self.live = self.peak = self.given = 0
        self._storages: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._paused = False
        self._give(held)

    @contextmanager
    def paused(self) -> Any:
        """Within, what is made counts as held by the caller."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":  # asks for an attribute
            return func(*args, **kwargs)
        counted = formula(func.overloadpacket)
        if counted is None and not self._paused:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        self._give(_tensors((args, kwargs)))
        result = func(*args, **kwargs)
        if self._paused:
            self._give(_tensors(result))
            return result
        self.allocations += sum(self._hold(x) for x in _tensors(result))
        self._count(func, args, kwargs, result)
        return result

    def _give(self, tensors: Iterable[torch.Tensor]) -> None:
        """What is first met as an argument was there all the time, at the worst moment too."""
        before, peak = self.live, self.peak
        for tensor in tensors:
            self._hold(tensor)
        self.given += self.live - before
        self.peak = peak + self.live - before

    def _count(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        packet, name = func.overloadpacket, func.overloadpacket.__name__
        if not func.is_view:
            self.calls[name] += 1
            self.moved[name] += _moved(func, args, kwargs, result)
        counted = formula(packet)
        if counted is not None:
            self.flops[name] += int(counted(*args, **kwargs, out_val=result))
            if is_modelled(packet):
                self.modelled.add(name)
                if kwargs.get("is_causal") or any(x is True for x in args):
                    self.uncounted.add(f"{packet}, which may leave out what a causal mask hides")
        elif is_product(packet):
            self.uncounted.add(str(packet))

    def _hold(self, tensor: torch.Tensor) -> bool:
        """Follow the memory of a tensor until it is freed; whether it is new."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._storages:
            return False
        size = storage.nbytes()
        self._storages[key] = weakref.ref(storage, lambda _: self._free(key)), size
        self.live += size
        self.peak = max(self.peak, self.live)
        return True

    def _free(self, key: int) -> None:
        _, size = self._storages.pop(key, (None, 0))
        self.live -= size


def size_of(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the tensors together; those that share their memory count once."""
    return sum({x.untyped_storage()._cdata: x.untyped_storage().nbytes() for x in tensors}.values())


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _moved(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    name = func.overloadpacket.__name__
    if name in _EMPTY:
        return 0
    given, made = _tensors((args, kwargs)), _tensors(result)
    if name in _PUTS:  # what is put there is read and written, the rest of the memory is not touched
        others = sum(_bytes(x) for x in given[1:])
        return others + (_bytes(given[-1]) if len(given) > 1 else 0)
    ours = {x.untyped_storage()._cdata for x in given}
    written = sum(_bytes(x) for x in made if x.untyped_storage()._cdata not in ours)
    if name in _TAKES:
        return 2 * written + sum(_bytes(x) for x in given if not x.is_floating_point())
    changed = _changed(func, args, kwargs)
    unread = {id(x) for x in changed} if name in _UNREAD or "out" in kwargs else set()
    read = sum(_bytes(x) for x in given if id(x) not in unread)
    return read + written + sum(_bytes(x) for x in changed)


def _changed(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    found = []
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            found += _tensors(given)
    return found


def _bytes(x: torch.Tensor) -> int:
    """Bytes of the elements, those of a broadcast axis once."""
    lengths = (n for n, stride in zip(x.shape, x.stride(), strict=True) if stride or not n)
    return x.element_size() * prod(lengths)
