"""Calls of attention layers, and of blocks around them: roles of arguments, masks and tables among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.conventions import hides_some
from veriformer.verify.forms.form import UNKNOWN, Readings
from veriformer.verify.forms.meanings import Parameters
from veriformer.verify.forms.rotation import POSITIONS, STARTS
from veriformer.verify.forms.signatures import INPUT, KEY, MASK, QUERY, VALUE, by_words, first_input, roles

ALWAYS = "always"
"""The reading of a layer that is causal by itself, whatever its mask."""

UNMASKED = "without a mask"
"""The reading of a layer that is causal by itself where it is given no mask, and else as its mask says."""

_CONTEXT = ("context", "encoder_hidden_states", "memory", "kv", "enc", "encoder_output")
_CAUSAL = ("is_causal", "causal")
BUILT_CAUSAL = (*_CAUSAL, "use_causal_mask", "causal_mask", "autoregressive", "masked", "is_decoder")
"""Usual names of what a constructor, or its config, is told so that a layer is causal."""

_COS, _SIN, _CIS = (
    ("cos", "freqs_cos"),
    ("sin", "freqs_sin"),
    ("freqs_cis", "freqs_complex", "freq_complex", "freqs_ci"),
)
_PAIRS = ("rope", "rope_cache", "rotary_cache")
_LENGTH = ("max_seq_length", "max_seq_len", "seq_len", "seq_length")
_BOTH = ("position_embeddings", "cos_sin", "rotary_pos_emb")
_PADDING = {"pad", "padding", "padded"}
"""Words of a mask over tokens, where another mask stands beside it."""
_LOOKS_BACK = {"mask", "masked", "causal", "autoregressive", "ahead", "future", "subsequent"}
"""Words of a flag, off by default, that makes a layer causal."""


def roles_of_call(candidate: Candidate) -> dict[str, str] | None:
    """Return the names of the call's parameters by role: x alone, or q, k and v; None where they do not say it."""
    causal = (*_CAUSAL, *causal_flags(candidate.parameters))
    optional = {**masks_of(candidate.parameters), "is_causal": causal, "cos": _COS, "sin": _SIN, "cis": _CIS}
    optional |= {"both": _BOTH, "pairs": _PAIRS, "start": STARTS, "length": _LENGTH}
    optional |= {"places": POSITIONS} if _needs(candidate, POSITIONS) else {}
    if "cross" in candidate.words:
        optional |= {"context": (*_CONTEXT, "y")}
    tensors = by_words(candidate.parameters, {"q": QUERY, "k": KEY, "v": VALUE})
    three = roles(candidate.parameters, tensors, optional)
    if three is not None:
        return three
    two = (
        roles(candidate.parameters, {"x": INPUT, "context": _CONTEXT}, optional)
        if _needs(candidate, _CONTEXT)
        else None
    )
    return two or first_input(candidate.parameters, {"context": _CONTEXT, **optional})


def masks_of(parameters: Parameters) -> dict[str, tuple[str, ...]]:
    """Return roles of masks: the usual names, else any name with "mask"; of two, words tell which masks tokens."""
    flags = causal_flags(parameters)
    named = [name for name in parameters if "mask" in words(name) and name not in flags]
    over_tokens = [name for name in named if _PADDING & set(words(name))]
    others = [name for name in named if name not in over_tokens]
    if len(over_tokens) == 1 and len(others) == 1:
        return {"mask": (others[0],), "padding": (over_tokens[0],)}
    return {"mask": (*(name for name in MASK if name not in flags), *named)}


def causal_flags(parameters: Parameters) -> tuple[str, ...]:
    """Return the flags that turn causality on: off by default, since a mask whose default is False is a flag."""
    off = [name for name, p in parameters.items() if p.default is False]
    return tuple(name for name in off if _LOOKS_BACK & set(words(name)) and not _PADDING & set(words(name)))


def takes_token_mask(names: Mapping[str, str]) -> bool:
    """Return whether a call can say which tokens are padding."""
    return bool({"mask", "padding"} & names.keys())


def has_tables(names: Mapping[str, str]) -> bool:
    """Return whether a layer is given the tables of its rotary embedding: cosines and sines, each or both, or
    numbers."""
    return bool({"cos", "cis", "both", "pairs"} & names.keys())


def mask_told(candidate: Candidate, arguments: Mapping[str, Any], readings: Readings) -> bool:
    """Return whether a call has a mask that hides something, or is causal and says so by its mask."""
    asked = "is_causal" not in (roles_of_call(candidate) or {}) and readings.get("causal") not in (ALWAYS, UNMASKED)
    by_mask = asked and arguments["x"].shape[1] > 1
    return hides_some(arguments.get("attention_mask")) or bool(arguments.get("is_causal") and by_mask)


def without_unknown(names: Mapping[str, str], readings: Readings) -> dict[str, str]:
    """Return the roles without a mask whose meaning is unknown."""
    unknown = ("mask", "padding") if readings.get("mask") == UNKNOWN else ()
    return {role: name for role, name in names.items() if role not in unknown}


def _needs(candidate: Candidate, names: tuple[str, ...]) -> bool:
    return any(name in names and p.default is p.empty for name, p in candidate.parameters.items())
