"""Features of the shapes and strides of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from veriformer.verify.contract.feature import Feature
from veriformer.verify.contract.features.making import Condition, Named, demanded, fragile, on, ordinary

TENSORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("softmax", "logsumexp"), ("z",)),
    **dict.fromkeys(("cross_entropy", "perplexity"), ("logits", "target")),
    "masked_lm_loss": ("logits", "labels"),
    "smooth_labels": ("target",),
    **dict.fromkeys(("temperature_scale", "top_k_filter", "top_p_filter", "greedy"), ("logits",)),
    "expected_calibration_error": ("probs", "target"),
    "mse_loss": ("prediction", "target"),
    **dict.fromkeys(("mlp", "feed_forward"), ("x", "w1", "b1", "w2", "b2")),
    "layer_norm": ("x", "weight", "bias"),
    "rms_norm": ("x", "weight"),
    "residual": ("x", "fx"),
    **dict.fromkeys(("gelu", "silu", "dropout"), ("x",)),
    "swiglu": ("x", "w_gate", "w_up", "w_down"),
    "mixture_of_experts": ("x", "router", "w1", "b1", "w2", "b2"),
    "token_embedding": ("ids", "weight"),
    "lm_head": ("h", "weight"),
    "transformer_block": ("x", "w_q", "w_k", "w_v", "w_o", "w1", "w2", "attention_mask"),
    "attention": ("q", "k", "v", "mask", "bias"),
    "multi_head_attention": ("x", "w_q", "w_k", "w_v", "w_o", "context", "attention_mask"),
    "linear_attention": ("q", "k", "v"),
    "cached_attention": ("q_new", "k_new", "v_new"),
    "rope": ("x", "positions"),
    "t5_relative_position_bucket": ("relative_position",),
    "beam_search": ("start",),
}
"""Tensor arguments of every operation, the main one first."""

PARAMETERS = frozenset({"w1", "b1", "w2", "b2", "w_q", "w_k", "w_v", "w_o", "w_gate", "w_up", "w_down", "router"})
"""Tensors whose sizes follow from others: they have features of strides and values alone."""

INTEGERS = frozenset({"ids", "labels", "target", "positions", "relative_position", "attention_mask", "start"})
"""Tensors that may hold integers."""

_RANKS = range(1, 6)
_LENGTHS = (64, 128, 1024)


def of_shapes(operation: str) -> Iterator[Feature]:
    """Yield the features of rank, size and strides of every tensor."""
    for name in TENSORS.get(operation, ()):
        yield from ordinary(operation, *_strides(name))
        if name not in PARAMETERS:
            yield from fragile(operation, *_degenerate(name))
            of_one = ordinary if name in INTEGERS else fragile
            yield from of_one(operation, *_of_one(name))
            for rank in _RANKS:
                of_rank = ordinary if rank in _usual_ranks(operation, name) else fragile
                yield from of_rank(operation, (f"{name} of rank {rank}", _rank(name, rank)))
            yield from ordinary(operation, *_sizes(name))
            yield from demanded(operation, *_several(name))
    yield from ordinary(operation, *_leading(operation))


_OF_LOSSES = frozenset({"cross_entropy", "perplexity", "masked_lm_loss", "mse_loss"})


def _usual_ranks(operation: str, name: str) -> range:
    """Return the ranks that people give a tensor: losses are of rows, or of batches of rows."""
    if name in INTEGERS:
        return range(1, 3)
    if operation in _OF_LOSSES:
        return range(2, 4)
    return range(1, 5)


def _rank(name: str, rank: int) -> Condition:
    return on(name, lambda x: x.ndim == rank)


def _degenerate(name: str) -> tuple[Named, ...]:
    return (
        (f"a 0-dimensional {name}", on(name, lambda x: x.ndim == 0)),
        (f"an empty {name}", on(name, lambda x: x.numel() == 0)),
    )


def _of_one(name: str) -> tuple[Named, ...]:
    return (
        (f"a last axis of one in {name}", on(name, lambda x: x.shape[-1] == 1)),
        (f"one entry in {name}", on(name, lambda x: x.numel() == 1)),
    )


def _sizes(name: str) -> Iterator[Named]:
    for size in _LENGTHS:
        yield f"a last axis of {name} above {size}", _wider(name, size)
        yield f"more than {size} rows of {name}", _more_rows(name, size)
    yield f"a last axis of {name} that is no multiple of 16", on(name, lambda x: x.shape[-1] % 16 != 0)
    yield f"a last axis of {name} that is no power of two", on(name, lambda x: x.shape[-1].bit_count() != 1)


def _wider(name: str, size: int) -> Condition:
    return on(name, lambda x: x.shape[-1] > size)


def _more_rows(name: str, size: int) -> Condition:
    return on(name, lambda x: x.shape[:-1].numel() > size)


def _several(name: str) -> tuple[Named, ...]:
    """Return the features of several rows, tokens or batch elements, which are computed independently."""
    return (
        (f"more than one row of {name}", _more_rows(name, 1)),
        (f"more than one token in {name}", on(name, lambda x: x.shape[-2] > 1)),
        (f"more than one batch element in {name}", on(name, lambda x: x.ndim > 2 and x.shape[0] > 1)),
    )


def _strides(name: str) -> tuple[Named, ...]:
    return (
        (f"a strided {name}", on(name, lambda x: not x.is_contiguous())),
        (f"a last axis of {name} with a stride", on(name, lambda x: x.shape[-1] > 1 and x.stride(-1) != 1)),
        (f"a transposed {name}", on(name, _transposed)),
        (f"an expanded {name}", on(name, _expanded)),
        (f"{name} that no view flattens", on(name, lambda x: not _viewed(x, (-1,)))),
        (
            f"{name} whose leading axes no view joins",
            on(name, lambda x: not _viewed(x, (-1, x.shape[-1]))),
        ),
    )


def _viewed(x: torch.Tensor, shape: tuple[int, ...]) -> bool:
    """Return whether ``x.view(shape)`` needs no copy; true for empty tensors and too few axes."""
    if x.ndim < len(shape) or not x.numel():
        return True
    try:
        x.view(shape)
    except RuntimeError:
        return False
    return True


def _transposed(x: torch.Tensor) -> bool:
    """Return whether another axis than the last is innermost, without gaps: a cast keeps such strides."""
    order = sorted(range(x.ndim), key=x.stride, reverse=True)
    return x.ndim > 1 and x.shape[-1] > 1 and x.stride(-1) > 1 and x.permute(order).is_contiguous()


def _expanded(x: torch.Tensor) -> bool:
    return any(size > 1 and stride == 0 for size, stride in zip(x.shape, x.stride(), strict=True))


def _leading(operation: str) -> tuple[Named, ...]:
    """Return features of the axes before those of the operation, where it takes any."""
    names = TENSORS.get(operation, ())
    if not names or operation in ("attention", "linear_attention", "cached_attention", "beam_search"):
        return ()
    first = names[0]
    return (
        ("leading axes", lambda a: a[first].ndim > 1),
        ("several leading axes", lambda a: a[first].ndim > 2),
        ("an empty leading axis", lambda a: 0 in a[first].shape[:-1]),
    )


_OF_LISTS = ("gradient_descent", "sgd_momentum", "adam", "adamw", "clip_grad_norm", "accumulate_gradients")


def of_lists(operation: str) -> Iterator[Feature]:
    """Yield features of operations over a list of tensors."""
    names = ("params", "grads") if operation in _OF_LISTS else ()
    for name in names:
        yield from ordinary(operation, (f"several {name}", on(name, lambda x: len(x) > 1)))
        yield from fragile(operation, (f"no {name}", on(name, lambda x: len(x) == 0)))
        yield from ordinary(operation, (f"0-dimensional {name}", on(name, lambda x: any(t.ndim == 0 for t in x))))
        yield from fragile(operation, (f"{name} of several dtypes", on(name, _mixed)))
        strided = on(name, lambda x: any(not t.is_contiguous() for t in x))
        flat = on(name, lambda x: any(not _viewed(t, (-1,)) for t in x))
        yield from ordinary(operation, (f"strided {name}", strided), (f"{name} that no view flattens", flat))


def _mixed(tensors: Sequence[torch.Tensor]) -> bool:
    return len({x.dtype for x in tensors if isinstance(x, torch.Tensor)}) > 1


def of_integers(operation: str) -> Iterator[Feature]:
    """Yield features of the integer types of ids, positions and masks."""
    for name in TENSORS.get(operation, ()):
        if name not in INTEGERS:
            continue
        yield from ordinary(operation, (f"int32 {name}", _typed(name, torch.int32)))
        for dtype in (torch.uint8, torch.int8, torch.int16):  # which nobody looks up rows by
            yield from fragile(operation, (f"{str(dtype).removeprefix('torch.')} {name}", _typed(name, dtype)))
        if name in ("attention_mask", "positions", "target"):
            yield from ordinary(operation, (f"a floating {name}", on(name, torch.is_floating_point)))


def _typed(name: str, dtype: torch.dtype) -> Condition:
    return on(name, lambda x: x.dtype is dtype)
