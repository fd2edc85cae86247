"""Matching and calls of norms, shared by the forms of both normalisations."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.construction import axis_of, built, flags, name_of_size
from veriformer.verify.forms.form import Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.holding import Holder, call_with_weights
from veriformer.verify.forms.interleaving import interleave_rows
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import first_input

WEIGHTS = ("as it is", "added to 1")
"""Scale of a row: the weight, or 1 + weight."""

EPSILONS = ("added in the root", "least norm")
"""Uses of ε: added to the mean of squares, or the least number that is divided by, which no equation has. Then it is
small, and no argument of the operation."""

LAYER_NORM = ({"layer", "norm"}, {"layernorm"}, {"layer", "normalization"}, {"layer", "normalisation"})
"""Words of a layer norm."""

_BOUNDING = frozenset(("clamp", "clamp_min", "maximum", "max", "normalize", "clip"))

_D = 7


def match_norm(
    candidate: Candidate, names: Sequence[set[str]], *, biases: bool, bias_due: bool = False
) -> Match | None:
    """Return a class whose instances hold a weight, and perhaps a bias, of the row's length, and nothing else.

    biases: whether the operation has one; bias_due: whether only a bias tells that it is this one.
    """
    if not candidate.is_network or not any(words <= set(candidate.words) for words in names):
        return None
    if first_input(candidate.parameters) is None:
        return None
    instance = built(candidate, {"width": _D, "eps": 1e-5}, _flags(candidate, biases=biases))
    if bias_due and "bias" not in roles_of(instance, biases):
        return None
    roles_of(instance, biases)
    axis = axis_of(candidate)
    bounded = not biases and name_of_size(candidate, "eps") is not None and _bounds(candidate)
    readings = {"weight": WEIGHTS, **({"eps": EPSILONS} if bounded else {})}
    return Match(True, readings, (f"every second row with {axis} = -2",) if axis else ())


def _bounds(candidate: Candidate) -> bool:
    """Return whether the call of a class takes the larger of two numbers."""
    forward = inspect.unwrap(getattr(candidate.thing, "forward", None) or candidate.thing)
    return bool(_BOUNDING & set(getattr(getattr(forward, "__code__", None), "co_names", ())))


def _flags(candidate: Candidate, *, biases: bool) -> dict[str, Any]:
    """Return the constructor's choice of a bias: taken where the operation has one, and else left out."""
    names = [name for name in ("bias", "use_bias") if name in candidate.constructor]
    return flags(candidate) if biases else dict.fromkeys(names, False)


def roles_of(instance: nn.Module, biases: bool) -> dict[str, str]:
    """Return the parameter's name by role, weight or bias. Raises Unfit where a parameter has no role."""
    found: dict[str, str] = {}
    for name, parameter in instance.named_parameters():
        role = "bias" if _is_bias(name, parameter, instance) else "weight"
        if tuple(parameter.shape) != (_D,) or role in found or (role == "bias" and not biases):
            raise Unfit(f"its parameter {name!r} of shape {tuple(parameter.shape)} has no part in the operation")
        found[role] = name
    return found


def _is_bias(name: str, parameter: Tensor, instance: nn.Module) -> bool:
    """Return whether a parameter is added: by its name, else by its initial value, which changes no row: ones scale,
    and zeros are added."""
    if any(word in name.lower() for word in ("bias", "beta", "b_2", "shift", "offset")):
        return True
    both = list(instance.parameters())
    starts = sorted(float(p.detach().float().mean()) for p in both)
    return starts == [0.0, 1.0] and all(bool((p == p.mean()).all()) for p in both) and not bool(parameter.any())


def norm_called(operation: str, candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    """Return the norm with weight and bias as arguments, and eps where the constructor takes it."""
    given = _flags(candidate, biases=operation == "layer_norm")
    instance = built(candidate, {"width": _D, "eps": 1e-5}, given)
    names, holder = roles_of(instance, operation == "layer_norm"), Holder.of(candidate)
    eps, shape, axis = name_of_size(candidate, "eps"), _shape_of(candidate), axis_of(candidate)
    default = candidate.constructor[eps].default if eps else None
    as_it_is = readings["weight"] == WEIGHTS[0]
    has_eps = isinstance(default, float) or default is inspect.Parameter.empty
    has_eps = has_eps and readings.get("eps", EPSILONS[0]) == EPSILONS[0]

    def call(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, **options: float) -> Tensor:
        _check(x, weight, bias)
        tensors: dict[str, Tensor] = {}
        if "weight" in names:
            scale = torch.ones(x.shape[-1], dtype=x.dtype) if weight is None else weight
            tensors[names["weight"]] = scale if as_it_is else _less_one(scale)
        if "bias" in names:
            tensors[names["bias"]] = torch.zeros(x.shape[-1], dtype=x.dtype) if bias is None else bias
        sizes = {"eps": options["eps"]} if has_eps else {}
        d = x.shape[-1]
        result: Tensor = call_with_weights(holder.module({"width": d, **sizes}, x.dtype, **given), tensors, x)
        others: list[Tensor] = []
        if shape is not None and d:
            axes = _two_axes(d)
            several = holder.module(sizes, x.dtype, **given, **{shape: axes})
            reshaped = {name: one.reshape(axes) for name, one in tensors.items()}
            with torch.no_grad():
                others.append(call_with_weights(several, reshaped, x.reshape(*x.shape[:-1], *axes)).reshape(x.shape))
        if axis is not None and d:
            second = holder.module({"width": d, **sizes}, x.dtype, **given, **{axis: -2})
            with torch.no_grad():
                others.append(_along_second(lambda columns: call_with_weights(second, tensors, columns), x))
        return interleave_rows(result, others)

    options = [*names, *(["eps"] if has_eps else [])]
    function = as_operation(operation, call, options, defaults={"eps": default} if isinstance(default, float) else {})
    if not as_it_is:
        function.exactly = {"weight": _of_the_form_one_plus}  # type: ignore[attr-defined]
    return function


def _along_second(norm: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return rows of x by a norm along the axis before the last: of equal columns the diagonal, where a weight along
    either axis scales an entry by its own."""
    columns = x[..., None].expand(*x.shape, x.shape[-1])
    found = norm(columns)
    return found.diagonal(dim1=-2, dim2=-1) if found.shape == columns.shape else found


def _shape_of(candidate: Candidate) -> str | None:
    """Return the constructor's argument that may be the sizes of several axes, where the code says that it takes them
    and an instance of two answers."""
    name = name_of_size(candidate, "width")
    if name is None or not _takes_several(candidate, name):
        return None
    shape = _two_axes(_D - 1)
    try:
        made = built(candidate, {"eps": 1e-5}, {name: shape})
        with torch.no_grad():
            found = made(torch.zeros(2, *shape))
    except Exception:  # it is the size of one axis
        return None
    if "shape" not in words(name) and not any(p.shape == torch.Size(shape) for p in made.parameters()):
        return None  # it is perhaps the list of which the last is the size
    return name if isinstance(found, Tensor) and found.shape == (2, *shape) else None


def _takes_several(candidate: Candidate, name: str) -> bool:
    """Return whether an annotation or the code tells one size from several: a weight may have any shape."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(candidate.thing.__init__)))
    except (OSError, TypeError, SyntaxError):  # made in memory, or in C
        return False
    return any(_tells_several(node, name) for node in ast.walk(tree))


_SEVERAL = frozenset(("list", "List", "tuple", "Tuple", "Sequence", "Size", "Iterable"))
_TELLING = frozenset(("isinstance", "len", "tuple", "list"))


def _tells_several(node: ast.AST, name: str) -> bool:
    match node:
        case ast.arg(arg=argument, annotation=ast.expr() as annotation) if argument == name:
            return not _SEVERAL.isdisjoint(re.findall(r"\w+", ast.unparse(annotation)))
        case ast.Call(func=ast.Name(id=function), args=[ast.Name(id=argument), *_]):
            return argument == name and function in _TELLING
    return False


class _Sizes(list[int]):
    """Sizes of axes as a hashable list, a key of built instances."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


def _two_axes(d: int) -> list[int]:
    """Factor a width into the sizes of two axes, the last the smaller."""
    last = next((p for p in range(2, d) if d % p == 0), 1)
    return _Sizes((d // last, last))


def _of_the_form_one_plus(weight: Tensor) -> Tensor:
    """Return the nearest weight to which 1 is added exactly, also by code that computes in single precision."""
    less = (weight - 1).to(torch.float32) if weight.dtype == torch.float64 else weight - 1
    return (less + 1).to(weight.dtype)


def _less_one(scale: Tensor) -> Tensor:
    """Return a weight that is added to 1. Raises NotOffered where rounding loses some of it: the scale is then another
    one.
    """
    less = scale - 1
    if bool(((less + 1 != scale) & ~scale.isnan()).any()):
        raise NotOffered("weight: 1 is added to the module's, which has no number for it")
    return less


def _check(x: Tensor, *parameters: Tensor | None) -> None:
    for name, parameter in zip(("weight", "bias"), parameters, strict=True):
        if parameter is not None and parameter.shape != x.shape[-1:]:
            raise NotOffered(f"{name}: expected shape {tuple(x.shape[-1:])}, got {tuple(parameter.shape)}")
