"""Code of other kinds as functions and modules of tensors.

Among it are layers over NumPy arrays, which hold their weights and whose derivative is written by hand.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from veriformer.verify.forms.array_places import Place, gradient_of, parts_of, weights_of
from veriformer.verify.forms.arrays import array_of, tensor_of, widest_of
from veriformer.verify.forms.autograd_functions import as_function
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.frameworks import over_tensors

_Function = Callable[..., Any]

_FORWARD, _BACKWARD = ("forward", "__call__"), ("backward", "backprop", "backward_pass")
_MODES = frozenset(("training", "train", "is_training"))
"""Arguments of a call by which a layer is told that it is trained: it is not."""

_MAKERS = frozenset(
    (
        *("ones", "zeros", "empty", "full", "eye"),
        *("randn", "rand", "random", "normal", "uniform", "standard_normal", "default_rng"),
    )
)
"""Names of NumPy by which a constructor makes the arrays that a layer holds."""


def candidate_of(name: str, thing: Any, module: ModuleType | None) -> Candidate:
    """Return a candidate: a function over arrays of another framework as one over tensors, a class with ``apply`` as
    that function, a class of layers over arrays as one of modules."""
    return Candidate(name, _layered(over_tensors(as_function(thing), module), module), module)


def _layered(thing: Any, module: ModuleType | None) -> Any:
    """Return a class of layers over arrays that holds weights as a class of modules; anything else as it is."""
    if not inspect.isclass(thing) or issubclass(thing, nn.Module | torch.optim.Optimizer) or module is None:
        return thing
    kind: Any = thing
    return _kind(kind) if _method(kind, _FORWARD) is not None and _holds_arrays(kind, frozenset()) else thing


def _method(kind: type, names: Sequence[str]) -> Callable[..., Any] | None:
    """Return the first of these methods that a class, or a base class in its file, defines."""
    own = [one for one in inspect.getmro(kind) if one.__module__ == kind.__module__]
    found = (vars(one)[name] for name in names for one in own if inspect.isfunction(vars(one).get(name)))
    return next((method for method in found if not _is_abstract(method)), None)


def _is_abstract(method: Callable[..., Any]) -> bool:
    """Return whether a method says no more than that another class has it."""
    return "NotImplementedError" in method.__code__.co_names and len(method.__code__.co_names) == 1


def _holds_arrays(kind: type, seen: frozenset[type]) -> bool:
    """Return whether a constructor, or what it calls of its class, makes arrays of NumPy, or layers that do."""
    if kind in seen:
        return False
    left, done = ["__init__"], set()
    while left:
        method = getattr(kind, left.pop(), None)
        if not inspect.isfunction(method) or method in done:
            continue
        done.add(method)
        used = set(method.__code__.co_names)
        reached = [method.__globals__.get(name) for name in used]
        if "torch" in {getattr(x, "__name__", "") for x in reached if isinstance(x, ModuleType)}:
            return False
        if _MAKERS & used and any(getattr(x, "__name__", "").partition(".")[0] == "numpy" for x in reached):
            return True
        kinds = (x for x in reached if inspect.isclass(x) and x.__module__ == kind.__module__)
        if any(_holds_arrays(x, seen | {kind}) for x in kinds):
            return True
        left += [name for name in used if name in dir(kind)]
    return False


@functools.cache
def _kind(layer: Any) -> type[nn.Module]:
    """Return the class of modules whose instances hold an instance of a layer."""
    forward, backward = _method(layer, _FORWARD), _method(layer, _BACKWARD)
    assert forward is not None
    derived = backward if backward is not None and _demanded(backward) == 1 else None

    @functools.wraps(inspect.getattr_static(layer, "__init__"))
    def build(self: nn.Module, *arguments: Any, **options: Any) -> None:
        nn.Module.__init__(self)
        _hold(self, layer(*arguments, **options))

    @functools.wraps(forward)
    def call(self: nn.Module, *arguments: Any, **options: Any) -> Any:
        return _call(self, forward, derived, arguments, options)

    named = {"__module__": layer.__module__, "__qualname__": layer.__qualname__, "__doc__": layer.__doc__}
    return type(layer.__name__, (nn.Module,), {**named, "__init__": build, "forward": call})


def _hold(module: nn.Module, layer: Any) -> None:
    """Let a module hold a layer: its arrays as parameters, and the layers that it holds as modules."""
    object.__setattr__(module, "layer", layer)
    for name, part in parts_of(layer):
        inner = _without_building(type(part))
        _hold(inner, part)
        if next(inner.parameters(), None) is not None:
            module.add_module(name, inner)
    for place in weights_of(layer):
        held = torch.from_numpy(place.array().copy()).to(torch.get_default_dtype())
        module.register_parameter(place.name, nn.Parameter(held))


def _without_building(part: type) -> nn.Module:
    kind = _kind(part) if _method(part, _FORWARD) is not None else nn.Module
    module = object.__new__(kind)
    nn.Module.__init__(module)
    return module


def _weights(layer: Any) -> Iterator[Place]:
    """Yield the places of all weights, in the order of the module's parameters."""
    yield from weights_of(layer)
    for _, part in parts_of(layer):
        yield from _weights(part)


def _call(
    module: nn.Module,
    forward: _Function,
    backward: _Function | None,
    arguments: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    layer = copy.deepcopy(module.layer)
    held = list(_weights(layer))  # before it is called, by which it may come to hold other arrays
    weights = [x for _, x in module.named_parameters()]
    for place, x in zip(held, weights, strict=True):
        place.put(array_of(x).copy())
    _evaluate(layer)
    modes = dict.fromkeys(_MODES & inspect.signature(forward).parameters.keys(), False)
    own, named = pytree.tree_map(array_of, (tuple(arguments), {**modes, **options}))
    given = [x for x in pytree.tree_leaves((tuple(arguments), options)) if isinstance(x, Tensor)]
    widest = widest_of([*given, *weights])
    result = pytree.tree_map(lambda x: tensor_of(x, widest), forward(layer, *own, **named))
    if backward is None or not torch.is_grad_enabled() or not any(x.requires_grad for x in [*given, *weights]):
        return result
    parts, structure = pytree.tree_flatten(result)
    found = _Called.apply((layer, held), backward, parts, len(given), *given, *weights)  # type: ignore[no-untyped-call]
    return pytree.tree_unflatten(list(found), structure)


def _evaluate(layer: Any) -> None:
    """Put a layer into evaluation mode: by its own method, else by the flags of the layer and of its parts."""
    method = getattr(layer, "eval", None)
    if inspect.ismethod(method) and _demanded(method.__func__) == 0:
        method()
        return
    if isinstance(getattr(layer, "training", None), bool):
        layer.training = False
    for _, part in parts_of(layer):
        _evaluate(part)


def _demanded(backward: Callable[..., Any]) -> int:
    """Return how many arguments a method demands beside its own object."""
    asked = [p for p in inspect.signature(backward).parameters.values() if p.default is p.empty]
    return len([p for p in asked if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]) - 1


class _Called(torch.autograd.Function):
    """Call of a layer that was made, with the derivative that its authors wrote."""

    @staticmethod
    def forward(ctx: Any, held: Any, backward: Any, parts: Sequence[Any], count: int, *tensors: Tensor) -> Any:
        ctx.held, ctx.backward_of, ctx.count, ctx.tensors = held, backward, count, tensors
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *others: Any) -> tuple[Any, ...]:
        if any(isinstance(x, Tensor) and bool(x.any()) for x in others):
            raise NotOffered("gradients: its backward takes that of its first result alone")
        layer, held = copy.deepcopy(ctx.held)  # of one call it may be asked twice, and layers add up what they find
        try:
            returned = ctx.backward_of(layer, upstream.numpy())
        except Exception as error:  # it is written for inputs of other ranks, or shapes
            said = f"gradients: its backward raised {type(error).__name__}: {str(error)[:100]}"
            raise NotOffered(said) from error
        wanted = ctx.needs_input_grad[4:]
        of_inputs = _of_inputs(returned, ctx.tensors[: ctx.count], wanted[: ctx.count])
        of_weights = [_of_weight(x) if asked else None for x, asked in zip(held, wanted[ctx.count :], strict=True)]
        pairs = zip([*of_inputs, *of_weights], ctx.tensors, strict=True)
        return (None, None, None, None, *(x if x is None else x.to(t.dtype) for x, t in pairs))


def _of_inputs(returned: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> Iterator[Tensor | None]:
    """Yield the gradient of each argument. What is given several times has one, or one for each time."""
    found = [tensor_of(x) for x in pytree.tree_leaves(returned) if x is not None]
    floating = [x for x in inputs if x.is_floating_point()]
    different = list(dict.fromkeys((x.data_ptr(), x.shape) for x in floating))
    once = len(found) == len(different) < len(floating)
    if any(wanted) and not once and len(found) < len(floating):
        raise NotOffered(f"gradients: its backward gives {len(found)} for {len(floating)} arguments")
    rest, met = iter(found), set()
    for x, asked in zip(inputs, wanted, strict=True):
        if not x.is_floating_point():
            yield None
            continue
        again = once and (x.data_ptr(), x.shape) in met
        met.add((x.data_ptr(), x.shape))
        own = torch.zeros_like(x) if again else next(rest, None)
        yield own if asked else None


def _of_weight(weight: Place) -> Tensor:
    found = gradient_of(weight)
    if found is None:
        raise NotOffered(f"gradients: its backward leaves none of {weight.name}")
    gradient: Tensor = tensor_of(found)
    return gradient
