"""Filters of logits: all but the k largest, or all outside the nucleus, removed."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter
from typing import Any

import torch

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Readings
from veriformer.verify.forms.named import Known, form_of, words_of
from veriformer.verify.forms.row_filters import SCORES, of_rows

_Z = {"logits": SCORES}
_IDS = {"ids": ("input_ids", "ids", "prefix_ids")}
"""Tokens before, which a filter is given beside scores and takes nothing from."""


def _beside_tokens(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    logits = given["logits"]
    return {"ids": torch.zeros(*logits.shape[:-1], 1, dtype=torch.int64), **given}


def _beside_all(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    return {"all": given["logits"].shape[-1], **_beside_tokens(given, readings)}


_SHARE = ("top_p", "p")


def _nucleus_of_its_own(candidate: Candidate) -> Mapping[str, tuple[str, ...]]:
    """Return what a filter that leaves a nucleus, or asks for one, is given where the largest alone are to be left."""
    found = [candidate.parameters[name].default for name in _SHARE if name in candidate.parameters]
    if any(x is Parameter.empty for x in found):
        return {"nucleus": tuple(_NUCLEI)}
    return {"nucleus": ("of all",)} if any(type(x) is float and 0.0 < x < 1.0 for x in found) else {}


_NUCLEI = {"off at zero": 0.0, "of all": 1.0}
"""By reading, the share of the mass that a nucleus is asked to have."""


def _beside_a_nucleus(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    whole = {"share": _NUCLEI[readings["nucleus"]]} if "nucleus" in readings else {}
    return {**whole, **_beside_tokens(given, readings)}


TOP_K = Known(
    "top_k_filter",
    words_of("top k logits", "top k filter", "top k filtering", "topk filter", "filter top k", "top k"),
    {**_Z, "k": ("k", "top_k", "topk", "thres")},
    not_words=frozenset(("p", "router", "gate", "gating", "moe", "sampler", "dataset")),
    conventions=("choice.ties",),
    filled=_IDS,
    arrange=_beside_tokens,
    says="top_k_logits(logits, k)",
)
TOP_P = Known(
    "top_p_filter",
    words_of("top p logits", "top p filter", "top p filtering", "nucleus filter", "nucleus filtering", "top p"),
    {**_Z, "p": ("p", "top_p", "threshold", "thres")},
    not_words=frozenset(("k", "sampler", "dataset")),
    conventions=("choice.ties",),
    filled=_IDS,
    arrange=_beside_tokens,
    says="top_p_filter(logits, p)",
)
_BOTH = words_of("top k top p", "top k p", "filter logits", "top p top k", "top filtering")
BOTH_K = Known(
    "top_k_filter",
    _BOTH,
    {**_Z, "k": ("top_k", "k")},
    conventions=("choice.ties",),
    filled={**_IDS, "share": _SHARE},
    arrange=_beside_a_nucleus,
    own=_nucleus_of_its_own,
    says="top_k_top_p_filtering(logits, top_k, top_p): its top_k",
    beside=True,
)
BOTH_P = Known(
    "top_p_filter",
    _BOTH,
    {**_Z, "p": ("top_p", "p")},
    conventions=("choice.ties",),
    filled={**_IDS, "all": ("top_k", "k")},
    arrange=_beside_all,
    says="top_k_top_p_filtering(logits, top_k, top_p): its top_p",
    beside=True,
)

FORMS = (
    of_rows(form_of("functions/top_k", TOP_K)),
    of_rows(form_of("functions/top_p", TOP_P)),
    of_rows(form_of("functions/top_k_of_both", BOTH_K)),
    of_rows(form_of("functions/top_p_of_both", BOTH_P)),
)
