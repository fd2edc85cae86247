"""A function under a name of the contract with the contract's number of arguments, whatever it calls them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from veriformer.verify.contract.signatures import OPTIONAL, POSITIONAL
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Form, Match, Readings
from veriformer.verify.forms.offering import as_operation

_HAVE_FORMS = ("attention", "multi_head_attention", "transformer_block", "kv_cache", "rope", "clip_grad_norm")
"""Operations whose names people use for other signatures, which have forms of their own."""


_VERBS = ("make", "build", "create", "get", "compute", "apply", "generate", "gen", "calculate", "calc")


def _said(name: str) -> str:
    """Return the name of a function without the verb before it: ``make_causal_mask``."""
    verb, _, rest = name.strip("_").partition("_")
    return rest if verb in _VERBS else name.strip("_")


def _names(candidate: Candidate, operation: str) -> list[str] | None:
    """Return the names of what is given by position; None where the signature is another."""
    if not candidate.is_function or _said(candidate.name.rpartition(".")[2].lower()) != operation:
        return None
    listed = [p for p in candidate.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [p.name for p in listed if p.default is p.empty and p.name not in OPTIONAL.get(operation, {})]
    named = all(name in candidate.parameters for name in POSITIONAL[operation])
    if named:
        return list(POSITIONAL[operation])
    return needed if len(needed) == len(POSITIONAL[operation]) else None


def _match(candidate: Candidate, operation: str) -> Match | None:
    return None if _names(candidate, operation) is None else Match(True)


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Any]:
    names = _names(candidate, operation) or []
    own = {name: p for name, p in candidate.parameters.items() if name in OPTIONAL.get(operation, {})}
    required = [name for name, p in own.items() if p.default is p.empty]

    def call(**given: Any) -> Any:
        theirs = dict(zip(names, (given[name] for name in POSITIONAL[operation]), strict=True))
        return candidate.thing(**theirs, **{name: given[name] for name in own if name in given})

    kept = {name: p.default for name, p in own.items() if name not in required}
    return as_operation(operation, call, list(own), required=required, defaults=kept)


FORMS = tuple(
    Form(
        name=f"functions/{operation}_by_contract",
        operation=operation,
        says="the contract's name and number of arguments",
        general=True,
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
    )
    for operation in POSITIONAL
    if operation not in _HAVE_FORMS
)
