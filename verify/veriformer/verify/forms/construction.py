"""Instances of classes: constructor arguments by the names that sizes usually have, and config objects.

A default that is not given is the one that the same argument has elsewhere in the module. Of a part that a constructor
is given, it is told which class of its module it is an instance of.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.config_names import CONFIGS
from veriformer.verify.forms.configs import (
    DTYPE,
    FIXED,
    FLAGS,
    RATED,
    UnknownEntry,
    annotation,
    chooses_dtype,
    configuration,
    expansion_for,
    is_config,
    is_expansion,
    is_rate,
    rate_of,
)
from veriformer.verify.forms.form import Unfit, UnknownArgument
from veriformer.verify.forms.meanings import BUILT, annotation_name
from veriformer.verify.forms.module_sizes import constants_of, sizes_set, with_read_constants
from veriformer.verify.forms.size_names import open_names, size_of

LARGEST = 4_000_000
"""Numbers that an instance may hold."""

_OF_CONFIGS = {"layers": 2, "vocabulary": 13, "length": 160, "batch": 8, "pad": 0, "eps": 1e-5, "base": 10000.0}
"""Sizes that no operation here asks for, where a constructor or its config does."""

_KINDS_OF_PARTS: Mapping[str, tuple[frozenset[str], ...]] = {
    "attention": (frozenset(("attention",)), frozenset(("attn",)), frozenset(("mha",))),
    "network": (
        *(frozenset(("feed", "forward")), frozenset(("feedforward",)), frozenset(("ffn",)), frozenset(("mlp",))),
        *(frozenset((word,)) for word in ("ff", "positionwise", "pointwise")),
        *(frozenset((first, "wise")) for first in ("position", "point")),
    ),
    "norm": (frozenset(("norm",)), frozenset(("normalization",)), frozenset(("layernorm",))),
}
"""By kind of part, the words of which arguments, and classes, of that kind have some."""

_WHOLES = frozenset(("encoder", "decoder", "transformer", "model", "config"))
"""Words of classes that hold such parts, and are none."""


def built(
    candidate: Candidate, sizes: Mapping[str, Any], given: Mapping[str, Any] | None = None, *, seed: int = 0
) -> Any:
    """Return an instance with these sizes, from a seed. given: constructor arguments by their own names, which come
    first.

    Raises Unfit where the constructor asks for what no size is known for, or raises.
    """
    said: Unfit | None = None
    for declared in (True, False):
        try:
            arguments = arguments_for(candidate, sizes, given or {}, declared=declared)
            constants = {**_OF_CONFIGS, **sizes}
            with torch.random.fork_rng(), sizes_set(candidate, constants):
                torch.default_generator.manual_seed(seed)  # torch.manual_seed also notes the stack of each call
                _small(candidate, arguments)
                return with_read_constants(candidate, candidate.make(**arguments), constants)
        except Unfit as reason:
            said = reason if said is None or isinstance(reason, UnknownArgument) else said
        except UnknownEntry as error:
            said = error.as_argument(sizes)
        except Exception as error:
            said = said or Unfit(f"its constructor raised {type(error).__name__}: {str(error)[:100]}")
        if not has_config(candidate):
            break
    raise said or Unfit("it cannot be built")


_LOOKED_AT: set[Any] = set()


def _small(candidate: Candidate, arguments: Mapping[str, Any]) -> None:
    """Raise Unfit where an instance would be large: some size of it was not understood."""
    key = candidate.thing, candidate.meanings
    if not candidate.is_network or key in _LOOKED_AT:
        return
    _LOOKED_AT.add(key)
    try:
        with torch.device("meta"):
            numbers = sum(p.numel() for p in candidate.make(**arguments).parameters())
    except Exception:  # what cannot be made without numbers is made with them
        return
    if numbers > LARGEST:
        raise Unfit(f"its smallest instance would hold {numbers} numbers")


def arguments_for(
    candidate: Candidate, sizes: Mapping[str, Any], given: Mapping[str, Any], *, declared: bool = True
) -> dict[str, Any]:
    """Return the constructor's arguments. Sizes that are not asked for are left out; defaults of other arguments stand.

    declared: whether a config is an instance of the module's own dataclass, where it has one.
    """
    found: dict[str, Any] = {}
    parts, beside = _parts_of(candidate), size_parameters(candidate)
    for name, p in candidate.constructor.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if name in given:
            found[name] = given[name]
        elif chooses_dtype(name, p.default, sizes):
            found[name] = sizes[DTYPE]
        elif name in beside and size_of(name, beside) in sizes:
            found[name] = sizes[size_of(name, beside)]
        elif size_of(name) == "inner" and "width" in sizes and not _has_width(candidate):
            found[name] = sizes["width"]
        elif is_rate(name) and not _beyond(p.default):
            rate = rate_of(p.default)
            found[name] = nn.Dropout(rate) if annotation_name(p).endswith("Module") else rate
            RATED.setdefault(candidate.thing, set()).add(name)
        elif name in FIXED and p.default is p.empty:
            found[name] = FIXED[name]
        elif name in CONFIGS or is_config(annotation(candidate, p)):
            found[name] = configuration(candidate, p, {**_OF_CONFIGS, **sizes}, given, declared=declared)
        elif p.default is p.empty and size_of(name) in _OF_CONFIGS:
            found[name] = _OF_CONFIGS[size_of(name)]
        elif name in parts:
            found[name] = parts[name].make(**arguments_for(parts[name], sizes, given, declared=declared))
        elif is_expansion(name) and (p.default is p.empty or isinstance(p.default, int | float)):
            found[name] = expansion_for(sizes, p.default if isinstance(p.default, int | float) else 1)
        elif p.default is p.empty and may_be_none(p.annotation):
            found[name] = None
        elif p.default is p.empty and (default := default_elsewhere(candidate, name)) is not p.empty:
            found[name] = default
        elif p.default is p.empty:
            if name not in FLAGS:
                message = f"its constructor asks for {name!r}, which is no size that is known"
                raise UnknownArgument(message, BUILT + name, open_names(sizes, candidate.constructor), p)
            found[name] = True
    return found


def may_be_none(said: Any) -> bool:
    """Return whether an annotation, perhaps written as a word, admits None."""
    text = said if isinstance(said, str) else str(said)
    return "None" in text.replace("NoneType", "None") or "Optional[" in text


def _beyond(default: Any) -> bool:
    """Return whether a default is no rate: such an argument has another meaning under the same name."""
    if default is None or default is inspect.Parameter.empty:
        return False
    return isinstance(default, bool) or not isinstance(default, int | float) or not 0 <= default <= 1


def flags(candidate: Candidate) -> dict[str, Any]:
    """Return the constructor's own arguments by which it holds biases, turned on."""
    return {name: True for name, p in candidate.constructor.items() if name in FLAGS and p.default in (False, p.empty)}


def score_scaling(candidate: Candidate) -> dict[str, Any]:
    """Return the constructor's own arguments by which scores are scaled, turned on where they are off: attention
    scales.
    """
    return {name: True for name, p in candidate.constructor.items() if name in _SCALED and p.default is False}


_SCALED = ("scale", "scaled", "use_scale", "scale_attn", "scale_scores", "scale_attn_weights")


def has_config(candidate: Candidate) -> bool:
    """Return whether the constructor takes a config object."""
    return any(name in CONFIGS or is_config(annotation(candidate, p)) for name, p in candidate.constructor.items())


def size_parameters(candidate: Candidate) -> dict[str, inspect.Parameter]:
    """Return the constructor's parameters without those that are an axis: a default below 0 is no size."""
    return {name: p for name, p in candidate.constructor.items() if not _is_axis(p)}


def axis_of(candidate: Candidate) -> str | None:
    """Return the constructor's parameter that is the last axis by default, by a name that axes have; None if none."""
    return next((name for name in ("dim", "axis") if _is_axis(candidate.constructor.get(name))), None)


def _is_axis(p: inspect.Parameter | None) -> bool:
    return p is not None and type(p.default) is int and p.default < 0


def _has_width(candidate: Candidate) -> bool:
    beside = size_parameters(candidate)
    return any(size_of(name, beside) == "width" for name in beside)


def takes_size(candidate: Candidate, size: str) -> bool:
    """Return whether the constructor has an argument for this size, a config object that may hold one, or a part that
    does; or a constant of the module is read for it."""
    if size in constants_of(candidate).values():
        return True
    beside = size_parameters(candidate)
    own = any(size_of(name, beside) == size or name in CONFIGS for name in beside)
    return own or any(takes_size(part, size) for part in _parts_of(candidate).values())


def name_of_size(candidate: Candidate, size: str) -> str | None:
    """Return the constructor's own argument for a size."""
    beside = size_parameters(candidate)
    return next((name for name in beside if size_of(name, beside) == size), None)


def default_elsewhere(candidate: Candidate, name: str) -> Any:
    """Return the one default that arguments of this name have in the module's other classes and functions.

    ``inspect.Parameter.empty`` where none has one, where they differ, and where it is no plain number, flag or word.
    """
    found: list[Any] = []
    for thing in candidate.siblings().values():
        if getattr(thing, "__module__", None) != getattr(candidate.thing, "__module__", "") or not callable(thing):
            continue
        try:
            p = inspect.signature(thing).parameters.get(name)
        except (ValueError, TypeError):
            continue
        if p is not None and p.default is not p.empty and p.default not in found:
            found.append(p.default)
    plain = len(found) == 1 and (found[0] is None or isinstance(found[0], bool | int | float | str))
    return found[0] if plain else inspect.Parameter.empty


def _parts_of(candidate: Candidate) -> dict[str, Candidate]:
    """Return, by constructor argument without a default, the class of module that it expects.

    By its annotation, else the network of the file whose name has the kind that the argument's name has: of several the
    one that shares most words with it, then the first.
    """
    found = {}
    for name, p in candidate.constructor.items():
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and not _is_number(name, p):
            part = _annotated(candidate, p) or next(_named(candidate, name), None)
            if part is not None:
                found[name] = part
    return found


def _is_number(name: str, p: inspect.Parameter) -> bool:
    return annotation_name(p) in ("int", "float", "bool", "str") or is_expansion(name)


def _networks(candidate: Candidate) -> dict[str, Any]:
    every = candidate.siblings().items()
    kinds = {name: x for name, x in every if inspect.isclass(x) and issubclass(x, nn.Module)}
    return {name: x for name, x in kinds.items() if x is not candidate.thing and not x.__module__.startswith("torch.")}


def _annotated(candidate: Candidate, p: inspect.Parameter) -> Candidate | None:
    said = annotation_name(p)
    kind = {**_dicts(candidate), **_networks(candidate)}.get(said)
    return None if kind is None else Candidate(said, kind, candidate.module, candidate.meanings)


def _dicts(candidate: Candidate) -> dict[str, Any]:
    """Return the module's own classes of dicts, in which several modules keep what they share."""
    kinds = {name: x for name, x in candidate.siblings().items() if inspect.isclass(x) and issubclass(x, dict)}
    return {name: x for name, x in kinds.items() if x.__module__ == candidate.thing.__module__}


def _named(candidate: Candidate, argument: str) -> Iterator[Candidate]:
    own = set(words(argument))
    kinds = [members for members in _KINDS_OF_PARTS.values() if any(one <= own for one in members)]
    of_kind = [
        (name, kind)
        for name, kind in _networks(candidate).items()
        if not set(words(name)) & _WHOLES and any(one <= set(words(name)) for members in kinds for one in members)
    ]
    for name, kind in sorted(of_kind, key=lambda pair: -len(own & set(words(pair[0])))):
        yield Candidate(name, kind, candidate.module, candidate.meanings)
