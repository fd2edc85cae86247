"""Losses with ``(input, target)``, as functions or classes without weights."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.added_terms import with_squared_normaliser
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import NotOffered, Readings
from veriformer.verify.forms.named import VARIANTS, Known, form_of, words_of
from veriformer.verify.forms.signatures import LOGITS, TARGET
from veriformer.verify.forms.stated_shapes import source_of

_OPTIONS = {
    "ignore_index": (
        *("ignore_index", "padding_idx", "pad_id", "pad_idx", "trg_pad_idx", "ignore_label", "ignored_index"),
        *("ignore_id", "ignored_label"),
    ),
    "label_smoothing": ("label_smoothing", "smoothing", "eps", "epsilon", "alpha"),
    "reduction": ("reduction",),
}
SHAPES = ("any", "rows", "classes second", "sequences", "a list of chunks")
"""Shapes of logits and targets: any axes before the classes, rows alone, ``[B, V, n]``, ``[B, n, V]`` alone, or
these as a list of pieces of the sequence."""

_CHUNKS = ("chunk_size", "num_chunks", "n_chunks", "chunks", "num_output_chunks", "chunk_len", "chunk_length")
_MASKS = ("mask", "loss_mask", "target_mask", "labels_mask", "label_mask", "loss_weights")
COUNTED = ("numbers", "booleans")
"""Dtypes of a mask that says of which targets the terms count."""

_IGNORED = re.compile(r"ignore_index\s*=\s*(-\d+)|[!=]=\s*(-\d+)")
_USUAL = -100
"""The class of a target that is ignored, which PyTorch has."""


def _own_readings(candidate: Candidate) -> dict[str, tuple[str, ...]]:
    """Return the reading of the class that the code itself ignores, where its text has one and no argument says it."""
    listed: dict[str, tuple[str, ...]] = {} if _takes_lists(candidate) else {"shape": SHAPES[:4]}
    if set(_OPTIONS["ignore_index"]) & candidate.parameters.keys():
        return listed
    if set(_MASKS) & candidate.parameters.keys():  # what is left out has some class
        return {**listed, "ignored": ("0",), "counted": COUNTED}
    found = [one or other for one, other in _IGNORED.findall(source_of(candidate))]
    return {**listed, "ignored": tuple(dict.fromkeys(found))} if found else listed


def _takes_lists(candidate: Candidate) -> bool:
    return "list" in source_of(candidate).lower()


def _in_chunks(given: Mapping[str, Any], names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the same call with chunks of other sizes, and with a list of unequal pieces of a sequence."""
    if "chunks" in names:
        yield from ({**given, "chunks": size} for size in (2, 3))
    logits = given["logits"]
    if isinstance(logits, Tensor) and logits.ndim == 3 and logits.shape[1] > 2:
        yield {**given, "logits": list(torch.split(logits, logits.shape[1] // 2 + 1, 1))}


def _shaped(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    logits, target = given["logits"], given["target"]
    if target.is_floating_point():
        raise NotOffered("target: classes are taken, not probabilities")
    if readings["shape"] == "rows":
        if given.get("reduction") == "none":
            raise NotOffered("reduction: of rows alone")
        logits, target = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
    elif readings["shape"] in SHAPES[3:]:
        if given.get("reduction") == "none":
            raise NotOffered("reduction: of sequences alone")
        logits, target = logits.reshape(1, -1, logits.shape[-1]), target.reshape(1, -1)
        if readings["shape"] == SHAPES[4]:
            logits = list(logits.chunk(2, 1))
    elif readings["shape"] == "classes second":
        logits = logits.movedim(-1, 1) if logits.ndim > 2 else logits
    own, counted = int(readings.get("ignored", _USUAL)), target != _USUAL
    counted = counted if readings.get("counted") == COUNTED[1] else counted.to(given["logits"].dtype)
    return {
        **given,
        "logits": logits,
        "target": target.masked_fill(target == _USUAL, own),
        "chunks": 1,
        "mask": counted,
    }


def _torch(logits: Tensor, target: Tensor, *, reduction: str = "mean", ignored: int = -100, **given: Any) -> Tensor:
    if target.is_floating_point():
        raise NotOffered("target: classes are taken")
    rows, classes = logits.flatten(0, -2), target.flatten()
    terms = nn.functional.cross_entropy(rows, classes, reduction=reduction, ignore_index=ignored)
    return terms.reshape(target.shape) if reduction == "none" else terms


def _shifted(logits: Tensor, target: Tensor, **given: Any) -> Tensor:
    return _torch(logits[..., :-1, :], target[..., 1:])


CROSS_ENTROPY = Known(
    "cross_entropy",
    words_of("cross entropy", "crossentropy", "crossentropyloss", "xent", "ce loss", "nll loss", "label smoothing"),
    {"logits": LOGITS, "target": TARGET},
    _OPTIONS,
    frozenset(("binary", "bce", "fused", "linear", "focal", "soft", "dataset")) | VARIANTS,
    readings={"shape": SHAPES},
    own=_own_readings,
    arrange=_shaped,
    filled={"chunks": _CHUNKS, "mask": _MASKS},
    alike=_in_chunks,
    neutral=("shape",),
    terms=with_squared_normaliser,
    rivals={
        "targets that are one position later": _shifted,
        "the sum of its terms": partial(_torch, reduction="sum"),
        "each of its terms by itself": partial(_torch, reduction="none"),
        "terms of class 0, its padding, left out": partial(_torch, ignored=0),
        "the sum of its terms but those of class 0, its padding": partial(_torch, reduction="sum", ignored=0),
    },
    says="loss(input, target), as a function or a class",
)

_LARGEST = 2048
"""Maximum number of classes of the unit matrix that stands for the weight of the last layer."""


def _by_unit_matrix(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    shaped = _shaped(given, readings)
    v = shaped["logits"].shape[-1]
    if v > _LARGEST:
        raise NotOffered(f"logits: up to {_LARGEST} classes are given by a unit matrix")
    return {**shaped, "weight": torch.eye(v, dtype=shaped["logits"].dtype)}


FUSED = Known(
    "cross_entropy",
    words_of("fused linear", "linear cross entropy", "linear crossentropy", "chunked cross entropy"),
    {
        "logits": ("hidden", "_input", "x", "input", "hidden_states", "outputs", "embeddings", "e", "inputs", "h"),
        "weight": ("weight", "lin_weight", "linear_weight", "w", "lm_head_weight", "c", "W", "vocab_weight"),
        "target": TARGET,
    },
    _OPTIONS,
    readings={"shape": SHAPES[1::-1]},
    arrange=_by_unit_matrix,
    neutral=("shape",),
    says="loss(hidden, weight, target): with a unit matrix for the weight, whose gradient is not judged",
    told=("the weight is a unit matrix: its gradient is not judged",),
)

PERPLEXITY = Known(
    "perplexity",
    words_of("perplexity", "ppl"),
    {"logits": LOGITS, "target": TARGET},
    {"ignore_index": _OPTIONS["ignore_index"]},
    readings={"shape": SHAPES[:2]},
    arrange=_shaped,
    neutral=("shape",),
)

FORMS = (
    form_of("functions/cross_entropy", CROSS_ENTROPY),
    form_of("functions/fused_linear_cross_entropy", FUSED),
    form_of("functions/perplexity", PERPLEXITY),
)
