"""Exact operator costs of one run, without a clock: everything that PyTorch's dispatcher sees.

Bytes moved are those that each operator reads and writes: views move none, a broadcast axis is read once, a gather
reads what it takes. What a kernel does within itself is not seen; FLOPs of fused attention follow PyTorch's formula.

FLOPs are those of matrix products, by PyTorch's own formulas first; a multiply-add is 2. Its counter takes a product
that it has no formula for as free, in silence: products that accumulate in place, and the fused attention
kernels of the CPU. Those get their formula here.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from math import prod
from typing import Any

import torch
from torch.utils import flop_counter
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

_UNREAD = {"copy_", "fill_", "zero_", "uniform_", "normal_", "bernoulli_", "random_", "exponential_"}
_TAKES = {"embedding", "gather", "index", "index_select", "take", "take_along_dim"}
_PUTS = {"index_put_", "index_copy_", "scatter_", "index_fill_", "_index_put_impl_"}
_ASKED = {"_local_scalar_dense", "equal", "nonzero", "masked_select", "_unique2"}
"""Operators after which the host knows a value, or how many there are."""
ALLOCATING = {"empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided"}
"""Operators that take memory and write nothing."""

_aten = torch.ops.aten

_Sizes = Sequence[int]

# PyTorch leaves these without types.
_on_shapes: Callable[..., Any] = flop_counter.shape_wrapper
_SDPA_FORWARD: Callable[..., Any] = flop_counter.sdpa_flop_count
_SDPA_BACKWARD: Callable[..., Any] = flop_counter.sdpa_backward_flop_count


class Phase(Enum):
    """Where an operator runs: before any gradient is sought, to give one, or again as before (checkpointing)."""

    FORWARD = "forward"
    BACKWARD = "backward"
    RECOMPUTED = "recomputed"


def phase() -> Phase:
    """Return the phase of the running operator.

    Autograd's backward runs without recording; operators recorded while it runs will be differentiated in turn.
    """
    if torch._C._current_graph_task_id() < 0:
        return Phase.FORWARD
    return Phase.RECOMPUTED if torch.is_grad_enabled() else Phase.BACKWARD


class Meter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts while it is entered. held: tensors that the caller has before; others are found as they come in.

    between: bytes that were made and are alive when the backward pass begins; 0 where there is none.
    waits: how often the host asked for a value that comes from an array: a number of its own, as a count of steps, is
    none.
    """

    def __init__(self, held: Iterable[torch.Tensor] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.modelled: set[str] = set()
        self.uncounted: set[str] = set()
        self.flops_of: Counter[Phase] = Counter()
        self.allocations = self.live = self.peak = self.given = self.between = self.waits = 0
        self._storages: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._made: dict[int, int] = {}
        self._of_arrays: set[int] = set()
        self._turned = False
        self._paused = False
        self._give(held)

    @contextmanager
    def paused(self) -> Any:
        """Count tensors made within as held by the caller."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def is_composed(self, func: Any) -> bool:
        """Return whether an operator counts as those that it decomposes into."""
        return _is_composed(func)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":  # asks for an attribute
            return func(*args, **kwargs)
        if not self._paused and self.is_composed(func):
            with self:
                return func.decompose(*args, **kwargs)
        given = _tensors((args, kwargs))
        self._give(given)
        if not self._turned and phase() is not Phase.FORWARD:
            self._turned, self.between = True, sum(self._made.values())
        result = func(*args, **kwargs)
        made = _tensors(result)
        if self._paused:
            self._give(made)
            return result
        for new in filter(self._hold, made):
            self.allocations += 1
            self._made[new.untyped_storage()._cdata] = new.untyped_storage().nbytes()
        self._count(func, args, kwargs, result, (given, made))
        if any(x.numel() > 1 or x.untyped_storage()._cdata in self._of_arrays for x in given):
            self.waits += func.overloadpacket.__name__ in _ASKED
            self._of_arrays.update(x.untyped_storage()._cdata for x in made)
        return result

    def _give(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count tensors first met as arguments as live from the start, at the peak too."""
        before, peak = self.live, self.peak
        for tensor in tensors:
            self._hold(tensor)
        self.given += self.live - before
        self.peak = peak + self.live - before

    def _count(self, func: Any, args: Any, kwargs: Any, result: Any, tensors: tuple[list[torch.Tensor], ...]) -> None:
        packet, name = func.overloadpacket, func.overloadpacket.__name__
        if not func.is_view:
            self.calls[name] += 1
            self.moved[name] += _moved(func, args, kwargs, *tensors)
        counted = _formula(packet)
        if counted is not None:
            flops = int(counted(*args, **kwargs, out_val=result))
            self.flops[name] += flops
            self.flops_of[phase()] += flops
            if _is_modelled(packet):
                self.modelled.add(name)
                if kwargs.get("is_causal") or any(x is True for x in args):
                    self.uncounted.add(f"{packet}, which may leave out what a causal mask hides")
        elif _is_product(packet):
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
        self._made.pop(key, None)
        self._of_arrays.discard(key)
        self.live -= size


def size_of(tensors: Iterable[torch.Tensor]) -> int:
    """Return the bytes of the tensors together; those that share their memory count once."""
    return sum({x.untyped_storage()._cdata: x.untyped_storage().nbytes() for x in tensors}.values())


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _moved(func: Any, args: Any, kwargs: Any, given: list[torch.Tensor], made: list[torch.Tensor]) -> int:
    name = func.overloadpacket.__name__
    if name in ALLOCATING:
        return 0
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
    for position, name in _written(func):
        found += _tensors(args[position] if position < len(args) else kwargs.get(name))
    return found


@cache
def _written(func: Any) -> list[tuple[int, str]]:
    """Place and name of the arguments that an operator writes to."""
    arguments = enumerate(func._schema.arguments)
    return [(place, one.name) for place, one in arguments if one.alias_info is not None and one.alias_info.is_write]


@cache
def _is_composed(func: Any) -> bool:
    """Return whether an operator without a formula decomposes into others, which are counted in its place."""
    return _formula(func.overloadpacket) is None and func._can_decompose()


def _bytes(x: torch.Tensor) -> int:
    """Return the bytes of the elements, those of a broadcast axis once."""
    lengths = (n for n, stride in zip(x.shape, x.stride(), strict=True) if stride or not n)
    return x.element_size() * prod(lengths)


def _accumulated(c: _Sizes, a: _Sizes, b: _Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """Count FLOPs of c + a b, for matrices, batches of them, or a matrix and a vector."""
    return _product(a, b)


def _product(a: _Sizes, b: _Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """Count FLOPs of a b: every element of a meets every column of b; a vector is one column."""
    return 2 * prod(a) * (b[-1] if len(b) > 1 else 1)


def _linear(x: _Sizes, weight: _Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    """Count FLOPs of x Wᵀ, with a bias and an activation in the same kernel."""
    return 2 * prod(x) * weight[0]


_FORMULAS = {
    **dict.fromkeys(
        (_aten.addmm_, _aten.baddbmm_, _aten.addbmm, _aten.addbmm_, _aten.addmv, _aten.addmv_), _accumulated
    ),
    **dict.fromkeys((_aten.mv, _aten.dot, _aten.vdot), _product),
    torch.ops.mkldnn._linear_pointwise: _linear,
}


def _fused_forward(q: _Sizes, k: _Sizes, v: _Sizes, *rest: Any, out_shape: Any = None, **options: Any) -> int:
    return int(_SDPA_FORWARD(q, _heads(k, q), _heads(v, q)))


def _fused_backward(
    g: _Sizes, q: _Sizes, k: _Sizes, v: _Sizes, *rest: Any, out_shape: Any = None, **options: Any
) -> int:
    return int(_SDPA_BACKWARD(g, q, _heads(k, q), _heads(v, q)))


def _heads(k: _Sizes, q: _Sizes) -> _Sizes:
    """Return the shape of keys that every query head reads: groups share memory, not work."""
    return (*k[:1], q[1], *k[2:])


_MODELLED = {
    _aten._scaled_dot_product_flash_attention_for_cpu: _on_shapes(_fused_forward),
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _on_shapes(_fused_backward),
}
"""The fused kernels of the CPU, free to PyTorch's counter: its formula for those of a GPU says what they do.

Not where a mask is causal: whether a kernel leaves out what is hidden, the dispatcher cannot see.
"""


def _formula(packet: Any) -> Callable[..., int] | None:
    """Return the FLOPs of an operator from its arguments and `out_val`, or None where there is no formula."""
    own = _MODELLED.get(packet) or _OWN.get(packet)
    return own or flop_registry.get(packet)


def _is_modelled(packet: Any) -> bool:
    """Return whether the FLOPs of an operator follow a formula that models the inside of its kernel."""
    return packet in _MODELLED or "attention" in packet.__name__


def _is_product(packet: Any) -> bool:
    """Return whether an operator multiplies matrices, by its name."""
    return packet in _FORMULAS or bool(_PRODUCT.search(packet.__name__))


_OWN = {packet: _on_shapes(count) for packet, count in _FORMULAS.items()}
_PRODUCT = re.compile(r"attention|mm(_|$)|mv_?$|(^|_)v?dot$|linear|matmul|conv")
