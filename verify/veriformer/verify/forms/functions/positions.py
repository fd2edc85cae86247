"""Slopes and biases of ALiBi, buckets of T5, sinusoidal tables and causal masks, as functions."""

from __future__ import annotations

import math
from typing import Any

import torch

from veriformer.verify.forms.form import NotOffered, Readings
from veriformer.verify.forms.named import Known, form_of, words_of

_HEADS = ("num_heads", "n_heads", "n_head", "heads", "n", "h", "attn_heads", "num_attention_heads")
_LENGTH = (
    "num_positions",
    "max_len",
    "max_length",
    "max_seq_len",
    "seq_len",
    "n_position",
    "length",
    "n_pos",
    "n",
    "end",
)
_WIDTH = ("d_model", "dim", "d_hid", "hidden_dim", "d", "embed_dim", "hidden_size", "d_embed", "embedding_dim")
SIZES = ("a number", "tokens [1,n]", "the shape (1, n)", "the shape (n, n)")
"""Argument by which a function of masks is given the number of tokens."""

_SIZE = (
    *("size", "n", "sz", "seq_len", "seq_length", "length", "T", "n_q", "tgt_len", "seq", "L", "N"),
    *("input_ids_shape", "input_shape", "shape", "mask_shape"),
)
_PLACE = {"dtype": ("dtype",), "device": ("device",)}
_PAST = ("past_key_values_length", "past_length", "past_len", "past_key_values_len", "past_kv_length")


def _as_tensor(result: Any, readings: Readings) -> Any:
    found = result[0] if isinstance(result, tuple) else result
    found = torch.as_tensor(found)
    return (found if found.is_floating_point() else found.to(torch.get_default_dtype())).to(torch.get_default_dtype())


def _flat(result: Any, readings: Readings) -> Any:
    return _as_tensor(result, readings).flatten()


def _positions(count: Any) -> Any:
    """Return so many positions in double precision: a half has no whole numbers beyond 2048 one by one."""
    return torch.arange(count, dtype=torch.float64) if isinstance(count, int) else count


PADDED = ("the encoding", "zeros, for padding")
"""Content of the row of position 0."""


def _table(result: Any, readings: Readings) -> Any:
    found = _two_axes(_as_tensor(result, readings))
    if readings.get("first") != PADDED[1] or found.ndim != 2 or not len(found):
        return found
    if bool(found[0].any()):
        raise NotOffered("num_positions: its first row is no row of zeros")
    first = torch.arange(found.shape[1]).remainder(2).to(found)
    return torch.cat((first[None], found[1:]))


COLUMNS = ("sines and cosines in turn", "sines, then cosines")
"""Order of the columns of a table."""


def _in_turn(result: Any, readings: Readings) -> Any:
    found = _table(result, readings)
    if readings["columns"] == COLUMNS[0] or found.shape[-1] % 2:
        return found
    return torch.stack(found.chunk(2, -1), -1).flatten(-2)


def _two_axes(x: torch.Tensor) -> torch.Tensor:
    """Squeeze axes of length one, from the first on, while there are more than two axes."""
    while x.ndim > 2 and 1 in x.shape:
        x = x.squeeze(list(x.shape).index(1))
    return x


def _square(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    if given["n_q"] != given["n_k"]:
        raise NotOffered("n_q, n_k: a square mask is all there is")
    return _sized(given, readings)


def _with_past(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    past = given["n_k"] - given["n_q"]
    if past < 0:
        raise NotOffered("n_q, n_k: there are no fewer keys than queries")
    return {**_sized(given, readings), "past": past}


def _sized(given: dict[str, Any], readings: Readings) -> dict[str, Any]:
    """Return the number of queries in the form that the code takes, and the place of its result."""
    n = given["n_q"]
    said = {
        SIZES[0]: n,
        SIZES[1]: torch.ones(1, n, dtype=torch.int64),
        SIZES[2]: torch.Size((1, n)),
        SIZES[3]: torch.Size((n, n)),
    }
    window = {"window": given["window"]} if "window" in given else {}
    return {"n_q": said[readings["size"]], **window, **_placed()}


def _placed() -> dict[str, Any]:
    return {"dtype": torch.get_default_dtype(), "device": torch.device("cpu")}


def _seen(result: Any, readings: Readings) -> Any:
    mask = result[0] if isinstance(result, tuple) else result
    mask = _two_axes(mask)
    if readings["mask"] == "additive":
        return mask > _HIDING
    if mask.is_floating_point() and not bool(((mask == 0) | (mask == 1)).all()):
        raise NotOffered("it gives numbers to be added to scores")
    return mask.to(torch.bool) if readings["mask"] != "inverted" else ~mask.to(torch.bool)


_HIDING = math.log(torch.finfo(torch.float32).smallest_normal)
"""Addend of a score that hides its key: its weight beside a score of 0 is no normal number."""


SLOPES = Known(
    "alibi_slopes",
    words_of("alibi slopes", "get slopes", "alibi slope", "slopes", "get slope"),
    {"num_heads": _HEADS},
    not_words=frozenset(("power",)),
    result=_flat,
    says="get_slopes(n): a list or a tensor",
)
BUCKETS = Known(
    "t5_relative_position_bucket",
    words_of("relative position bucket", "position bucket"),
    {"relative_position": ("relative_position", "rel_pos", "relative_positions")},
    {
        "bidirectional": ("bidirectional",),
        "num_buckets": ("num_buckets", "n_buckets", "buckets"),
        "max_distance": ("max_distance", "max_dist"),
    },
)
SINUSOIDS = Known(
    "sinusoidal_encoding",
    words_of("sinusoid", "sinusoidal", "positional encoding", "position encoding", "sinusoids"),
    {"num_positions": _LENGTH, "d_model": _WIDTH},
    {"base": ("base", "theta", "max_period", "n_base")},
    readings={"first": PADDED},
    result=_table,
    says="a function of length and width that gives the table",
)
AT_POSITIONS = Known(
    "sinusoidal_encoding",
    words_of("sinusoid", "sinusoidal", "sincos pos", "sincos position", "positional encoding", "position encoding"),
    {"num_positions": ("pos", "positions", "position", "pos_ids", "position_ids"), "d_model": _WIDTH},
    {"base": ("base", "theta", "max_period", "n_base")},
    not_words=frozenset(("2d", "3d")),
    readings={"columns": COLUMNS},
    arrange=lambda given, readings: {**given, "num_positions": _positions(given["num_positions"])},
    result=_in_turn,
    says="a function of positions and width that gives a row for each",
)
_KEYS = ("n_k", "k_len", "kv_len", "key_len", "src_len", "len_k", "S", "kv_seq_len", "key_length", "seq_len_k", "m")
_QUERIES = ("n_q", "q_len", "query_len", "len_q", "seq_len_q", "query_length", *_SIZE)
_WINDOW = {"window": ("window", "window_size", "sliding_window", "sliding_window_size", "local_window", "attn_window")}
_OF_MASKS = words_of(
    "causal mask", "subsequent mask", "square subsequent", "look ahead", "lookahead mask", "autoregressive mask"
)


OBLONG = Known(
    "causal_mask",
    _OF_MASKS,
    {"n_q": _QUERIES, "n_k": _KEYS},
    _WINDOW,
    readings={"mask": ("boolean", "inverted", "additive")},
    arrange=lambda given, readings: {**given, **_placed()},
    filled=_PLACE,
    result=_seen,
    conventions=("causal.alignment",),
    says="causal_mask(q_len, k_len): boolean, inverted or additive",
)
MASK = Known(
    "causal_mask",
    _OF_MASKS,
    {"n_q": _SIZE},
    _WINDOW,
    readings={"mask": ("boolean", "inverted", "additive"), "size": SIZES},
    neutral=("size",),
    arrange=_square,
    filled=_PLACE,
    result=_seen,
    says="subsequent_mask(size), or of tokens or a shape: a square mask, boolean, inverted or additive",
)
BEHIND = Known(
    "causal_mask",
    _OF_MASKS,
    {"n_q": _SIZE, "past": _PAST},
    _WINDOW,
    readings={"mask": ("boolean", "inverted", "additive"), "size": SIZES},
    neutral=("size",),
    arrange=_with_past,
    filled=_PLACE,
    result=_seen,
    says="causal_mask(size, past): a mask for queries that stand behind a past",
)

FORMS = tuple(
    form_of(f"functions/{name}", known)
    for name, known in (
        ("slopes", SLOPES),
        ("buckets", BUCKETS),
        ("sinusoids", SINUSOIDS),
        ("sinusoids_at_positions", AT_POSITIONS),
        ("subsequent_mask", MASK),
        ("oblong_mask", OBLONG),
        ("mask_behind_past", BEHIND),
    )
)
