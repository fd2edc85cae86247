"""Features of the shapes and strides of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Floats, Integers, Tensor, TensorList
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.feature import Feature
from veriformer.verify.contract.features.making import Condition, Named, demanded, fragile, on, ordinary

_RANKS = range(1, 6)
_LENGTHS = (64, 128, 1024)


def of_shapes(operation: str) -> Iterator[Feature]:
    """Yield the features of rank, size and strides of every tensor."""
    for name, tensor in tensors(operation).items():
        yield from ordinary(operation, *_strides(name))
        if not (isinstance(tensor, Floats) and tensor.sized_by_others):
            yield from fragile(operation, *_degenerate(name))
            of_one = ordinary if isinstance(tensor, Integers) else fragile
            yield from of_one(operation, *_of_one(name))
            for rank in _RANKS:
                of_rank = ordinary if rank in _usual_ranks(operation, tensor) else fragile
                yield from of_rank(operation, (f"{name} of rank {rank}", _rank(name, rank)))
            yield from ordinary(operation, *_sizes(name))
            yield from demanded(operation, *_several(name))
    yield from ordinary(operation, *_leading(operation))


def tensors(operation: str) -> Mapping[str, Tensor]:
    """Return the tensors among the arguments of an operation, the main one first."""
    return OPERATIONS[operation].tensors if operation in OPERATIONS else {}


def _usual_ranks(operation: str, tensor: Tensor) -> range:
    """Return the usual ranks of a tensor: losses are of rows, or of batches of rows."""
    if isinstance(tensor, Integers):
        return range(1, 3)
    return range(2, 4) if operation in dtypes.NUMBERS else range(1, 5)


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
    first = next((name for name, one in tensors(operation).items() if one.axes.startswith("...")), None)
    if first is None:
        return ()
    return (
        ("leading axes", lambda a: a[first].ndim > 1),
        ("several leading axes", lambda a: a[first].ndim > 2),
        ("an empty leading axis", lambda a: 0 in a[first].shape[:-1]),
    )


def of_lists(operation: str) -> Iterator[Feature]:
    """Yield features of operations over a list of tensors."""
    given = operation in OPERATIONS and OPERATIONS[operation].of_kind(TensorList)
    for name in ("params", "grads") if given else ():  # what parameters are stepped by is part of their call
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
    for name, tensor in tensors(operation).items():
        if not isinstance(tensor, Integers):
            continue
        yield from ordinary(operation, (f"int32 {name}", _typed(name, torch.int32)))
        for dtype in (torch.uint8, torch.int8, torch.int16):  # which nobody looks up rows by
            yield from fragile(operation, (f"{str(dtype).removeprefix('torch.')} {name}", _typed(name, dtype)))
        if tensor.floating:
            yield from ordinary(operation, (f"a floating {name}", on(name, torch.is_floating_point)))


def _typed(name: str, dtype: torch.dtype) -> Condition:
    return on(name, lambda x: x.dtype is dtype)
