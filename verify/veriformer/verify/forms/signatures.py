"""Roles of parameters by the names that people give them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from veriformer.verify.forms.candidate import words
from veriformer.verify.forms.form import UnknownArgument
from veriformer.verify.forms.meanings import CALLED, Parameters

Names = Mapping[str, tuple[str, ...]]
"""By role, the names that a parameter of that role usually has."""

QUERY, KEY, VALUE = (
    ("q", "query", "queries", "xq", "q_", "Q"),
    ("k", "key", "keys", "xk", "k_", "K"),
    ("v", "value", "values", "xv", "V"),
)
INPUT = (
    "x",
    "input",
    "inputs",
    "hidden_states",
    "hidden_state",
    "hidden",
    "tensor",
    "input_tensor",
    "embeds",
    "h",
    "X",
    "src",
)
MASK = (
    *("mask", "attn_mask", "attention_mask", "key_padding_mask", "src_mask", "tgt_mask"),
    *("enc_self_attn_mask", "sources_mask", "slf_attn_mask", "self_attn_mask", "padding_mask"),
)
LOGITS = (
    "logits",
    "input",
    "inputs",
    "pred",
    "preds",
    "prediction",
    "predictions",
    "output",
    "outputs",
    "x",
    "scores",
    "y_hat",
    "y_pred",
)
TARGET = ("target", "targets", "labels", "label", "y", "y_true", "gold", "tgt", "target_ids")

_HARMLESS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def roles(parameters: Parameters, needed: Names, optional: Names | None = None) -> dict[str, str] | None:
    """Return the parameter's name by role; None where a needed role has no parameter.

    Raises UnknownArgument for a parameter without a default or a role: only calls can find out what it is.
    """
    found: dict[str, str] = {}
    every = {**needed, **(optional or {})}
    for role, names in every.items():
        # The list gives the order: a name that is listed first is the better guess.
        taken = next((name for name in names if name in parameters and name not in found.values()), None)
        if taken is not None:
            found[role] = taken
    if any(role not in found for role in needed):
        return None
    require_known(parameters, found.values(), tuple(names[0] for role, names in every.items() if role not in found))
    return found


_NO_TENSORS = frozenset(
    (
        *("mask", "len", "length", "lens", "lengths", "dim", "dims", "size", "norm", "bias"),
        *("pos", "position", "positions", "proj", "scale"),
    )
)
"""Words of arguments that say something of a tensor, and are not it."""


def by_words(parameters: Parameters, needed: Names) -> dict[str, tuple[str, ...]]:
    """Return the usual names, and with them what is demanded and has one of them for a word: ``query_states``,
    ``pre_q``.
    """
    asked = [name for name, p in parameters.items() if p.default is p.empty and not _NO_TENSORS & set(words(name))]
    usual = {role: {name.lower() for name in names} for role, names in needed.items()}
    return {
        role: (*names, *(name for name in asked if usual[role] & set(words(name)))) for role, names in needed.items()
    }


def first_input(parameters: Parameters, optional: Names | None = None) -> dict[str, str] | None:
    """Return roles where the first parameter is the input ``x``, whatever its name; None without parameters."""
    names = [name for name, p in parameters.items() if p.kind not in _HARMLESS]
    return roles(parameters, {"x": (names[0],)}, optional) if names else None


def require_known(parameters: Parameters, known: Any, left: tuple[str, ...] = ()) -> None:
    """Raise UnknownArgument where a parameter that is not known has no default. left: names of roles that are open."""
    known = set(known)
    for name, p in parameters.items():
        if p.default is p.empty and p.kind not in _HARMLESS and name not in known:
            raise UnknownArgument(f"asks for {name!r}, which the form has no value for", CALLED + name, left, p)


def unknown_needed(parameters: Parameters, needed: Names) -> UnknownArgument | None:
    """Return the error for a call whose needed roles have unusual names; None where it takes too few arguments."""
    left = {role: names for role, names in needed.items() if not set(names) & parameters.keys()}
    usual = {name for names in needed.values() for name in names}
    asked = [(name, p) for name, p in parameters.items() if p.default is p.empty and p.kind not in _HARMLESS]
    other = [(name, p) for name, p in asked if name not in usual]
    if not left or len(other) < len(left):
        return None
    name, p = other[0]
    asked_for = " or ".join(next((one for one in names if one != name), role) for role, names in left.items())
    message = f"asks for {name!r} where others ask for {asked_for}"
    return UnknownArgument(message, CALLED + name, tuple(names[0] for names in left.values()), p)


def default_of(parameters: Parameters, name: str | None) -> Any:
    """Return the default of a parameter; the empty marker where it has none or is not there."""
    return inspect.Parameter.empty if name is None or name not in parameters else parameters[name].default
