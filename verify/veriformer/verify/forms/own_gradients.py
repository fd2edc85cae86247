"""Functions over arrays with the gradients that their authors wrote: a flag, a sibling or a method beside them."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.interleaving import nearly_equal

Function = Callable[..., Any]

DERIVATIVE = frozenset(
    ("backward", "bwd", "backprop", "grad", "gradient", "derivative", "deriv", "prime", "jacobian", "d", "delta")
)
"""Words of a function that gives gradients of the one whose name has all others."""

_AXES = ("axis", "dim")
_FORWARD = frozenset(("forward", "fwd", "call"))
_FLAGS = ("prime", "derivative", "deriv", "derive", "backward", "gradient")
"""Flags by which a function gives its derivative in place of its value."""

_UPSTREAM = (
    *("dy", "dout", "d_out", "grad", "grads", "grad_output", "grad_out", "upstream", "g", "gradient", "gradients"),
    *("dvalues", "dz", "delta", "d_y", "output_grad", "grad_outputs", "dl", "upstream_grad", "accum_grad", "dloss"),
)
_RESULT = ("y", "out", "output", "s", "probs", "a", "result", "activation", "softmax_output", "activated")

SHAPES = ((3, 4), (4, 4))
"""Shapes of the matrices on which a gradient is tried: it is that of the function where it is right for one of them."""


@dataclass(frozen=True)
class Backward:
    """A way to ask for gradients. function: over tensors. roles: by its argument, what it is given: ``upstream``,
    ``result``, or an argument of the function itself. flag: the argument that is turned on; empty where there is none.
    """

    function: Function
    roles: Mapping[str, str]
    flag: str = ""

    def gradient(self, given: Mapping[str, Any], result: Tensor, upstream: Tensor, name: str) -> Tensor:
        """Return the gradient of an argument. Raises ValueError where it has no shape by which it is one."""
        held = {**given, "upstream": upstream, "result": result}
        arguments = {own: held[role] for own, role in self.roles.items() if role in held}
        if self.flag:
            arguments[self.flag] = True
        found = self.function(**arguments)
        floating = [own for own, x in given.items() if isinstance(x, Tensor) and x.is_floating_point()]
        if isinstance(found, tuple | list):
            found = dict(zip(floating, found, strict=False)).get(name)
        elif name != floating[0]:
            found = None
        x = given[name]
        if not isinstance(found, Tensor):
            raise ValueError(f"it gives no gradient of {name}")
        if "upstream" not in self.roles.values():
            found = _times(found, upstream, x)
        if found.shape != x.shape:
            raise ValueError(f"its gradient of {name} has shape {tuple(found.shape)}, and that has {tuple(x.shape)}")
        return found.to(x.dtype)

    def check(self, given: Mapping[str, Any]) -> None:
        """Raise NotOffered for another axis than the last where a derivative is perhaps a matrix for each row."""
        x = next(x for x in given.values() if isinstance(x, Tensor) and x.is_floating_point())
        axes = [given[name] for name in _AXES if isinstance(given.get(name), int)]
        if "upstream" not in self.roles.values() and any(axis % max(x.ndim, 1) != x.ndim - 1 for axis in axes):
            raise NotOffered("gradients: a derivative is laid out for the last axis")


def _times(found: Tensor, upstream: Tensor, x: Tensor) -> Tensor:
    """Return the product of a derivative, elementwise or a matrix for each row, with what comes from above."""
    if found.shape == (*x.shape, x.shape[-1]):
        return torch.einsum("...i,...ij->...j", upstream, found)
    return upstream * found


def with_own_gradient(over: Callable[[Function], Function], function: Function, module: ModuleType | None) -> Function:
    """Return a function over arrays as one over tensors, with the gradients that its authors wrote, where they are
    right for some matrix.

    over: from a function over arrays to the same over tensors.
    """
    forward = over(function)
    if module is None:
        return forward
    for backward in _written(over, function, module):
        if _is_of(backward, forward, function):
            return _differentiable(forward, backward, function)
    return forward


def _written(over: Callable[[Function], Function], function: Function, module: ModuleType) -> Iterator[Backward]:
    own = _parameters(function)
    for flag in (name for name in _FLAGS if name in own and own[name].default is False):
        roles = {name: name for name in own if name != flag}
        yield Backward(over(function), roles, flag)
    for beside in _siblings(function, module):
        asked = _parameters(beside)
        known = {name: role for name in asked if (role := _role(name, own))}
        unknown = [name for name, p in asked.items() if name not in known and p.default is p.empty]
        if not unknown:
            yield Backward(over(beside), known)
        elif len(unknown) == 1:  # a value or the argument that it is of
            for role in ("result", next(iter(own), "")):
                yield Backward(over(beside), {**known, unknown[0]: role})


def _role(name: str, own: Mapping[str, inspect.Parameter]) -> str:
    if name in own:
        return name
    if name.lower() in _UPSTREAM:
        return "upstream"
    return "result" if name.lower() in _RESULT else ""


def _siblings(function: Function, module: ModuleType) -> Iterator[Function]:
    """Yield what gives gradients by its name: of the module, or of the object whose method the function is."""
    owner = getattr(function, "__self__", None)
    own = set(words(function.__name__)) - _FORWARD
    place = {name: getattr(owner, name, None) for name in dir(owner)} if owner is not None else vars(module)
    for name, x in place.items():
        said = set(words(name))
        of_words = bool(said & DERIVATIVE) and said - DERIVATIVE == own
        if inspect.isroutine(x) and (of_words or name == f"d{function.__name__}"):
            yield x


def _parameters(function: Function) -> dict[str, inspect.Parameter]:
    try:
        every = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in
        return {}
    return {name: p for name, p in every.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _is_of(backward: Backward, forward: Function, function: Function) -> bool:
    """Return whether it gives what differences of the function give, for a matrix of some shape."""
    return any(_agrees(backward, forward, function, shape) for shape in SHAPES)


def _agrees(backward: Backward, forward: Function, function: Function, shape: tuple[int, int]) -> bool:
    for given in _arguments(function, shape):
        try:
            result = forward(**given)
            if not isinstance(result, Tensor) or not bool(result.isfinite().all()):
                continue
            upstream = (
                torch.linspace(-1.0, 2.0, max(result.numel(), 1), dtype=torch.float64).cos().reshape(result.shape)
            )
            name = next(iter(given))
            found = backward.gradient(given, result, upstream, name)
            return nearly_equal(found, _differences(forward, given, name, upstream))
        except Exception:  # refused, for whatever reason
            continue
    return False


def _arguments(function: Function, shape: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Yield arguments for what a function demands: a matrix, and then vectors, classes or matrices."""
    asked = [name for name, p in _parameters(function).items() if p.default is p.empty]
    x = torch.linspace(0.0, 7.0, shape[0] * shape[1], dtype=torch.float64).sin().reshape(shape)
    others = (x[0] + 2, torch.arange(shape[0]) % shape[1], x.flip(0))
    for rest in itertools.product(others, repeat=max(len(asked) - 1, 0)) if len(asked) < MOST else ():
        yield dict(zip(asked, (x, *rest), strict=False))


MOST = 5
"""A function that demands so many arguments is not tried."""


def _differences(forward: Function, given: Mapping[str, Any], name: str, upstream: Tensor) -> Tensor:
    """Return the gradient of an argument by central differences."""
    x, h = given[name], torch.finfo(torch.float64).eps ** (1 / 3)
    found = torch.zeros_like(x)
    for place in itertools.product(*map(range, x.shape)):
        step = torch.zeros_like(x)
        step[place] = h
        ahead, behind = (forward(**{**given, name: x + sign * step}) for sign in (1, -1))
        found[place] = (upstream * (ahead - behind)).sum() / (2 * h)
    return found


def _differentiable(forward: Function, backward: Backward, function: Function) -> Function:
    parameters = inspect.signature(function)

    @functools.wraps(forward)
    def call(*arguments: Any, **options: Any) -> Any:
        given = dict(parameters.bind(*arguments, **options).arguments)
        wanted = [x for x in pytree.tree_leaves(list(given.values())) if isinstance(x, Tensor) and x.requires_grad]
        names = [name for name, x in given.items() if isinstance(x, Tensor) and x.is_floating_point()]
        if not wanted or not torch.is_grad_enabled():
            return forward(**given)
        backward.check(given)
        return _Called.apply(forward, backward, given, names, *(given[name] for name in names))  # type: ignore[no-untyped-call]

    return call


class _Called(torch.autograd.Function):
    """Call of a function over arrays whose backward pass is that of its authors."""

    @staticmethod
    def forward(
        ctx: Any,
        forward: Function,
        backward: Backward,
        given: Mapping[str, Any],
        names: Sequence[str],
        *tensors: Tensor,
    ) -> Any:
        held = {**given, **dict(zip(names, (x.detach() for x in tensors), strict=True))}
        result = forward(**held)
        ctx.forward_of, ctx.backward_of, ctx.held, ctx.names = forward, backward, held, names
        return result.clone() if isinstance(result, Tensor) else result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
        result, found = ctx.forward_of(**ctx.held), []  # what an object keeps of a call is that of the last one
        for i, name in enumerate(ctx.names):
            wanted = ctx.needs_input_grad[4 + i]
            found.append(ctx.backward_of.gradient(ctx.held, result, upstream, name) if wanted else None)
        return (None, None, None, None, *found)
