"""Functions, and classes without weights, recognised by their names and their arguments' roles."""

from __future__ import annotations

import contextlib
import dis
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.building import make_callable
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.flattened import flatten_class
from veriformer.verify.forms.form import Form, Match, Readings, Unfit, UnknownArgument
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.interleaving import interleave_rows
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.own_gradients import DERIVATIVE
from veriformer.verify.forms.signatures import Names, by_words, default_of, roles, unknown_needed
from veriformer.verify.forms.stated_shapes import source_of

_OF_OTHERS = (
    "taylor sparse hierarchical adaptive margin arc angular am spherical poly ohem pc tempered bi sym gce mixed"
)
VARIANTS = frozenset(_OF_OTHERS.split())
"""Words of other functions that are called softmax or cross-entropy as well."""

Arrange = Callable[[dict[str, Any], Readings], dict[str, Any]]
"""From arguments by role, as the contract has them, to arguments by role as the code takes them."""


def _as_given(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    return given


def _none(given: Mapping[str, Any], names: Collection[str]) -> Iterable[dict[str, Any]]:
    return ()


def _no_readings(candidate: Candidate) -> Mapping[str, tuple[str, ...]]:
    return {}


def _first(result: Any, readings: Readings) -> Any:
    return first(result)


@dataclass(frozen=True)
class Known:
    """An operation by name. names: sets of words, one of which a name must have, and no word of ``not_words``.

    needed, options: by the contract's argument the usual names. told: what a reader must know.
    filled: what the code asks for beside them, by a role that ``arrange`` knows: sizes that the tensors have.
    readings: conventions to try. arrange, result: what they do to arguments and results. alike: from arguments by role,
    and the roles that the code has, other arguments that give the same. own: readings that the code itself tells.
    """

    operation: str
    names: tuple[frozenset[str], ...]
    needed: Names
    options: Names = field(default_factory=dict)
    not_words: frozenset[str] = frozenset()
    readings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    arrange: Arrange = _as_given
    alike: Callable[[Mapping[str, Any], Collection[str]], Iterable[dict[str, Any]]] = _none
    result: Callable[[Any, Readings], Any] = _first
    rivals: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    terms: Callable[[Callable[..., Any]], Mapping[str, Callable[..., Any]]] | None = None
    beside: bool = False
    says: str = ""
    neutral: tuple[str, ...] = ()
    conventions: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    filled: Names = field(default_factory=dict)
    own: Callable[[Candidate], Mapping[str, tuple[str, ...]]] = _no_readings


def form_of(folder_and_file: str, known: Known) -> Form:
    """Return the form of an operation that is known by name."""
    return Form(
        name=folder_and_file,
        operation=known.operation,
        says=known.says or f"a function or a class without weights, by name: {', '.join(known.needed)}",
        match=lambda candidate: _match(_as_function(candidate, known), known),
        bind=lambda candidate, readings: _bind(_as_function(candidate, known), readings, known),
        rivals=known.rivals,
        terms=known.terms,
        neutral=known.neutral,
        beside=known.beside,
        conventions=known.conventions,
    )


def _as_function(candidate: Candidate, known: Known) -> Candidate:
    """Return a class that is built from arguments of the operation as a function of these as well."""
    if not candidate.is_class or not any(names <= set(candidate.words) for names in known.names):
        return candidate
    taken, build = candidate.parameters, candidate.constructor
    called = [role for role, names in known.needed.items() if set(names) & taken.keys()]
    built_from = {role for role in known.needed if role not in called and set(known.needed[role]) & build.keys()}
    if not called or not built_from | (set(known.options) & build.keys() - taken.keys()):
        return candidate
    return flatten_class(candidate) or candidate


def _match(candidate: Candidate, known: Known) -> Match | None:
    words = set(candidate.words)
    if (
        candidate.is_module
        or words & (known.not_words | DERIVATIVE)
        or not any(names <= words for names in known.names)
    ):
        return None
    if candidate.is_class and not _weightless(candidate):
        return None
    if _roles(candidate, known) is None:
        return None
    told = (*known.told, *((IN_PLACE,) if _returns_nothing(candidate) else ()))
    readings = {**known.readings, **known.own(candidate)}
    return Match(True, readings, told, closed=names_nothing_else(candidate, known.names))


IN_PLACE = "it returns nothing, and its first argument is changed in place"


def _returns_nothing(candidate: Candidate) -> bool:
    """Return whether all that a function returns is None."""
    code = getattr(inspect.unwrap(candidate.thing), "__code__", None) if candidate.is_function else None
    if code is None:
        return False
    return all(
        before.argval is None and before.opname == "LOAD_CONST"
        if step.opname == "RETURN_VALUE"
        else step.argval is None
        for before, step in pairwise(dis.get_instructions(code))
        if step.opname in ("RETURN_VALUE", "RETURN_CONST")
    )


_PLAIN = frozenset(("loss", "function", "fn", "func", "layer", "forward"))
"""Words of a name that say nothing of what is computed."""


def names_nothing_else(candidate: Candidate, names: Iterable[Collection[str]]) -> bool:
    """Return whether a name has no word but those of an operation: code of that name is meant to be it.

    names: sets of words by which the operation is known.
    """
    return _PLAIN.union(*names) >= set(candidate.words)


def _roles(candidate: Candidate, known: Known) -> dict[str, str] | None:
    """Return the names of arguments by role. The only argument without a default is the only role needed."""
    parameters = {name: p for name, p in candidate.parameters.items() if "eps" in known.options or not _guards(p)}
    optional = {**known.options, **known.filled}
    found = roles(parameters, _worded(parameters, known.needed, optional), optional)
    asked = [name for name, p in parameters.items() if p.default is p.empty and p.kind not in _MANY]
    others = {name: p for name, p in parameters.items() if not any(name in names for names in optional.values())}
    unknown = unknown_needed(others, known.needed) if found is None else None
    if unknown is not None and len(known.needed) > 1:
        raise unknown
    if found is not None or len(known.needed) != 1 or len(asked) != 1:
        return found
    (role,) = known.needed
    return roles(parameters, {role: (asked[0],)}, optional)


def _worded(parameters: Parameters, needed: Names, optional: Names) -> Names:
    """Return the usual names, and of a role that has none of them the one demanded argument that has one for a word."""
    others = {name: p for name, p in parameters.items() if not any(name in names for names in optional.values())}
    every = by_words(others, needed)
    found = {}
    for role, names in needed.items():
        more = [name for name in every[role][len(names) :] if not any(name in usual for usual in needed.values())]
        found[role] = (*names, *more) if len(more) == 1 else names
    return found


def _guards(p: inspect.Parameter) -> bool:
    """Return whether a number is so small by default that it only keeps a logarithm or a quotient finite."""
    return isinstance(p.default, float) and 0 < p.default < math.sqrt(torch.finfo(torch.float32).eps)


_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _weightless(candidate: Candidate) -> bool:
    """Return whether instances can be made and called that hold no weights: of modules, and of plain classes."""
    if not candidate.is_network and not candidate.parameters:
        return False
    try:
        made = built(candidate, {})
    except UnknownArgument:
        raise
    except Unfit:
        return False
    return next(made.parameters(), None) is None if isinstance(made, nn.Module) else not isinstance(made, BaseException)


def _bind(candidate: Candidate, readings: Readings, known: Known) -> Callable[..., Any]:
    names = _roles(candidate, known) or {}
    options = [role for role in names if role in known.options]
    demanded = [role for role in options if default_of(candidate.parameters, names[role]) is _EMPTY]
    may_be_none = {role for role in demanded if _asks_for_none(candidate, names[role])}
    required = [role for role in demanded if role not in may_be_none]
    shown = {role: default_of(candidate.parameters, names[role]) for role in options if role not in demanded}
    changed = names.get(next(iter(known.needed)), "") if _returns_nothing(candidate) else ""

    def call(**given: Any) -> Any:
        theirs = known.arrange({role: given[role] for role in given if given[role] is not None}, readings)
        x = next((value for value in given.values() if isinstance(value, Tensor)), None)
        dtype = x.dtype if x is not None and x.is_floating_point() else torch.get_default_dtype()
        function = make_callable(candidate, {}, dtype)

        def answer(theirs: Mapping[str, Any]) -> Any:
            own: dict[str, Any] = {names[role]: None for role in may_be_none}
            own |= {names[role]: value for role, value in theirs.items() if role in names}
            if not changed:
                return known.result(function(**own), readings)
            own[changed] = own[changed].clone()
            function(**own)
            return known.result(own[changed], readings)

        whole, others = answer(theirs), []
        for other in known.alike(theirs, frozenset(names)):
            with contextlib.suppress(Exception), torch.no_grad():  # it takes no such arguments together
                others.append(answer(other))
        return interleave_rows(whole, others) if others else whole

    defaults = {role: value for role, value in shown.items() if isinstance(value, int | float | str | bool)}
    return as_operation(known.operation, call, options, required=required, defaults=defaults)


_EMPTY = default_of({}, None)


def _asks_for_none(candidate: Candidate, name: str) -> bool:
    """Return whether code that demands an argument asks whether that is None."""
    return re.search(rf"\b{re.escape(name)} is (not )?None\b", source_of(candidate)) is not None


def words_of(*names: str) -> tuple[frozenset[str], ...]:
    """Return sets of words, each from a string of words."""
    return tuple(frozenset(name.split()) for name in names)
