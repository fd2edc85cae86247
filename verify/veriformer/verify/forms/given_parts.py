"""Parts that a constructor is given: which class of its module each one is an instance of."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.configs import is_expansion
from veriformer.verify.forms.meanings import annotation_name

_KINDS: Mapping[str, tuple[frozenset[str], ...]] = {
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


def parts_of(candidate: Candidate) -> dict[str, Candidate]:
    """By constructor argument that has no default, the class of the module that it is an instance of.

    By its annotation, else the network of the module whose name says the kind that the argument's name says, of several
    the one that shares most words with it, then the first.
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
    kinds = [members for members in _KINDS.values() if any(one <= own for one in members)]
    of_kind = [
        (name, kind)
        for name, kind in _networks(candidate).items()
        if not set(words(name)) & _WHOLES and any(one <= set(words(name)) for members in kinds for one in members)
    ]
    for name, kind in sorted(of_kind, key=lambda pair: -len(own & set(words(pair[0])))):
        yield Candidate(name, kind, candidate.module, candidate.meanings)
