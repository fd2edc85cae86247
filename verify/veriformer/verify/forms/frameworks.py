"""Functions over arrays of JAX and NumPy as functions of tensors: through DLPack, with ``jax.vjp`` for the gradient."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
import torch.utils.dlpack
from torch import Tensor
from torch.utils import _pytree as pytree

from veriformer.verify.forms.arrays import array_of, tensor_of, widest_of
from veriformer.verify.forms.own_gradients import with_own_gradient

_ROOTS = {"jax": "jax", "jaxlib": "jax", "flax": "jax", "optax": "jax", "numpy": "numpy"}


def framework_of(thing: Any, module: ModuleType | None) -> str:
    """Return ``jax`` or ``numpy`` where a function is one of their arrays; empty for tensors, and for no function.

    A function is of the framework that it comes from, else of the one that its module uses. Of a module that uses torch
    as well it is of the one that its own code mentions, where a trial says that it takes arrays and no tensors.
    """
    if inspect.isclass(thing) or isinstance(thing, ModuleType) or not callable(thing):
        return ""
    own = _ROOTS.get(_root(getattr(thing, "__module__", None)), "")
    if own or module is None:
        return own
    used = {_root_of(x) for name, x in vars(module).items() if not name.startswith("__")}
    if "torch" in used:
        used = _mentioned(thing)
        if "torch" in used or "numpy" not in used or not _takes_arrays_alone(thing):
            return ""
    found = {_ROOTS[root] for root in used if root in _ROOTS}
    return "jax" if "jax" in found else next(iter(found), "")


def _root_of(x: Any) -> str:
    return _root(getattr(x, "__name__", None) if isinstance(x, ModuleType) else getattr(x, "__module__", None))


def _mentioned(function: Any, seen: frozenset[Any] = frozenset()) -> set[str]:
    """Return the packages that the code of a function mentions, and that of those of its file that it calls."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or function in seen:
        return set()
    named = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    found = {_root_of(x) for x in named}
    for x in named:
        if inspect.isfunction(x) and x.__globals__ is function.__globals__:
            found |= _mentioned(x, seen | {function})
    return found


def _takes_arrays_alone(function: Any) -> bool:
    """Return whether a function gives arrays for square arrays of some rank, and nothing for tensors."""
    ranks = [torch.ones((1, 1, 2, 2)[-rank:], requires_grad=True) for rank in (2, 4, 3, 1)]
    given = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return any(
        _answers(function, dict.fromkeys(given, x.detach().numpy())) and not _answers(function, dict.fromkeys(given, x))
        for x in ranks
    )


def _answers(function: Any, given: dict[str, Any]) -> bool:
    kind = type(next(iter(given.values()), None))
    try:
        leaves = pytree.tree_leaves(function(**given))
    except Exception:  # refused, for whatever reason
        return False
    return any(isinstance(x, kind) for x in leaves)


def _root(name: Any) -> str:
    return name.partition(".")[0] if isinstance(name, str) else ""


def over_tensors(thing: Any, module: ModuleType | None) -> Any:
    """Return the thing itself, or the same function over tensors where it is one over arrays."""
    framework = framework_of(thing, module)
    if not framework:
        return thing
    return _of_jax(thing) if framework == "jax" else with_own_gradient(_of_numpy, thing, module)


def like(function: Callable[..., Any], thing: Any, module: ModuleType | None) -> Callable[..., Any]:
    """Return a function over tensors where what it calls, a function or a method, is over arrays; else itself."""
    framework = framework_of(thing, module)
    if not framework:
        return function
    return _of_jax(function) if framework == "jax" else _of_numpy(function)


def _of_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        given, named = pytree.tree_map(array_of, (arguments, options))
        widest = widest_of(pytree.tree_leaves((arguments, options)))
        return pytree.tree_map(lambda x: tensor_of(x, widest), function(*given, **named))

    return call


def _of_jax(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        leaves, shape = pytree.tree_flatten((arguments, options))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        wide = any(x.dtype in (torch.float64, torch.complex128) for x in tensors)
        made: dict[str, Any] = {}

        def of_arrays(arrays: Sequence[Any]) -> Any:
            rest = iter(arrays)
            given, named = pytree.tree_unflatten([next(rest) if isinstance(x, Tensor) else x for x in leaves], shape)
            result, made["shape"] = pytree.tree_flatten(function(*given, **named))
            made["others"] = [None if _is_array(x) else x for x in result]
            return [x for x in result if _is_array(x)]

        found = iter(_Called.apply(of_arrays, wide, *tensors))  # type: ignore[no-untyped-call]
        parts = [next(found) if x is None else x for x in made["others"]]
        return pytree.tree_unflatten(parts, made["shape"])

    return call


def _is_array(x: Any) -> bool:
    return isinstance(x, importlib.import_module("jax").Array)


def _precision(wide: bool) -> contextlib.AbstractContextManager[Any]:
    """Enable 64 bits in JAX for float64 tensors: by default it makes float32 arrays, as its users expect."""
    jax = importlib.import_module("jax")
    place = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    manager: contextlib.AbstractContextManager[Any] = place.enable_x64(wide)
    return manager


def _array(x: Tensor, wide: bool) -> Any:
    x = x.detach()
    if x.dtype == torch.int64 and not wide:
        x = x.to(torch.int32)
    return importlib.import_module("jax").dlpack.from_dlpack(x.contiguous())


def _tensor(x: Any) -> Tensor:
    found: Tensor = torch.utils.dlpack.from_dlpack(x)
    return found.to(torch.int64) if found.dtype == torch.int32 else found.clone()


class _Called(torch.autograd.Function):
    """Autograd function of a call of a function over arrays, whose backward pass is JAX's."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], wide: bool, *tensors: Tensor) -> tuple[Tensor, ...]:
        jax = importlib.import_module("jax")
        moved = [i for i, x in enumerate(tensors) if ctx.needs_input_grad[i + 2]]
        with _precision(wide):
            arrays = [_array(x, wide) for x in tensors]

            def of_moved(*some: Any) -> Any:
                whole = list(arrays)
                for i, x in zip(moved, some, strict=True):
                    whole[i] = x
                return function(whole)

            if moved:
                results, ctx.back = jax.vjp(of_moved, *(arrays[i] for i in moved))
            else:
                results = of_moved()
            ctx.moved, ctx.wide, ctx.count = moved, wide, len(tensors)
            found = tuple(_tensor(x) for x in results)
        ctx.mark_non_differentiable(*(x for x in found if not x.is_floating_point()))
        return found

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Any, ...]:
        with _precision(ctx.wide):
            gradients = ctx.back([_array(g, ctx.wide) for g in cotangents])
            found: list[Any] = [None] * ctx.count
            for i, g in zip(ctx.moved, gradients, strict=True):
                found[i] = _tensor(g)
        return (None, None, *found)
