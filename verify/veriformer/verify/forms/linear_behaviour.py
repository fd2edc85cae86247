"""Recognition of linear maps by behaviour: whoever wrote the module, and whatever its parameters are called."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

_SEEN: WeakKeyDictionary[nn.Module, tuple[str, str, bool] | None] = WeakKeyDictionary()


def by_behaviour(part: nn.Module) -> tuple[str, str, bool] | None:
    """Names of the weight and the bias of a module that has these alone, and whether it is held as ``[n_out, n_in]``.

    It is a linear map where it makes of unit vectors the rows of its weight, or the columns, with the bias added: which
    no rounding touches. None where it does something else.
    """
    if part not in _SEEN:
        _SEEN[part] = _as_a_linear_map(part)
    return _SEEN[part]


def _as_a_linear_map(part: nn.Module) -> tuple[str, str, bool] | None:
    own = dict(part.named_parameters(recurse=False))
    matrices = [name for name, p in own.items() if p.ndim == 2]
    vectors = [name for name, p in own.items() if p.ndim == 1]
    if len(matrices) != 1 or len(vectors) > 1 or len(own) != len(list(part.parameters())) or len(own) > 2:
        return None
    weight, bias = matrices[0], vectors[0] if vectors else ""
    draw = torch.Generator().manual_seed(0)
    drawn = {name: torch.randint(-9, 10, p.shape, generator=draw).to(p.dtype) for name, p in own.items()}
    for transposed in (True, False):
        held = drawn[weight].T if transposed else drawn[weight]
        try:
            with torch.no_grad():
                found = torch.func.functional_call(part, drawn, (torch.eye(held.shape[0], dtype=held.dtype),))
        except Exception:  # of another width, or called otherwise
            continue
        if isinstance(found, Tensor) and torch.equal(found, held + drawn[bias] if bias else held):
            return weight, bias, transposed
    return None
