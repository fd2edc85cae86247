"""Modules that hold their weights, called with weights that are given, so that gradients flow to them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.contract import dtypes
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.configs import DTYPE
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import NotOffered, Unfit
from veriformer.verify.forms.precision import in_dtype

_HALVES = [dtypes.TORCH[name] for name in dtypes.HALVES]

_KEPT = 32
"""Maximum number of instances of a class that are kept; sizes that are drawn seldom come twice."""


@dataclass
class Holder:
    """A class of modules: instances are made once for each choice of sizes and dtype, as long as these are in use."""

    candidate: Candidate
    _made: dict[Any, nn.Module] = field(default_factory=dict)

    @classmethod
    def of(cls, candidate: Candidate) -> Holder:
        """Return the one holder of a class."""
        return _HOLDERS.setdefault((candidate.thing, candidate.meanings), cls(candidate))

    def instances(self) -> list[nn.Module]:
        """Return the instances that are kept."""
        return list(self._made.values())

    def module(self, sizes: Mapping[str, Any], dtype: torch.dtype, **given: Any) -> nn.Module:
        """Return an instance with these sizes in a dtype, in evaluation mode. Raises NotOffered where it cannot be
        built.
        """
        key = tuple(sorted(sizes.items())), tuple(sorted(given.items())), dtype
        if key not in self._made:
            with contextlib.redirect_stdout(io.StringIO()):  # some say what they are made of
                try:
                    made = built(self.candidate, {**sizes, DTYPE: dtype}, given)
                except Unfit as reason:
                    raise NotOffered(str(reason)) from reason
            if not isinstance(made, nn.Module):
                raise NotOffered(f"expected a module, got {type(made).__name__}")
            if len(self._made) == _KEPT:
                del self._made[next(iter(self._made))]
            self._made[key] = in_dtype(made, dtype).eval()
        return self._made[key]


_HOLDERS: dict[Any, Holder] = {}


def call_with_weights(module: nn.Module, weights: Mapping[str, Tensor], *arguments: Any, **options: Any) -> Any:
    """Call ``module(*arguments, **options)`` with these tensors in place of all its parameters.

    Raises NotOffered where a parameter is missing, or has another shape, and where one of its linear maps returns
    infinities in half precision: there they are the module's result, whoever wrote it.
    """
    own = dict(module.named_parameters())
    if own.keys() != weights.keys():
        raise NotOffered(f"parameters: expected {sorted(own)}, got {sorted(weights)}")
    for name, weight in weights.items():
        if own[name].shape != weight.shape:
            raise NotOffered(f"{name}: the module has shape {tuple(own[name].shape)}, got {tuple(weight.shape)}")
    # What a call leaves in a buffer is no part of the next call: that each call has its own is told where it matters.
    held = {name: buffer.clone() for name, buffer in module.named_buffers()}
    with _inside_the_range(module):
        return torch.func.functional_call(module, {**held, **weights}, arguments, options)


@contextlib.contextmanager
def _inside_the_range(module: nn.Module) -> Iterator[None]:
    """Refuse, as not offered, calls in which a linear map inside the module makes infinities of finite numbers."""
    hooks = [
        part.register_forward_hook(partial(_refuse_overflow, name))
        for name, part in module.named_modules()
        if part is not module and not any(part.children()) and any(p.ndim == 2 for p in part.parameters())
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _refuse_overflow(name: str, part: nn.Module, inputs: tuple[Any, ...], result: Any) -> None:
    if type(result) is not Tensor or result.dtype not in _HALVES or result.is_meta:
        return
    entries = [x for x in (*inputs, *part.parameters()) if isinstance(x, Tensor)]
    if not bool(result.isfinite().all()) and all(bool(x.isfinite().all()) for x in entries):
        raise NotOffered(f"{name}: its result leaves the range of {str(result.dtype).removeprefix('torch.')}")


def first(result: Any) -> Any:
    """Return the result itself, or the first of several."""
    return result[0] if isinstance(result, tuple | list) and result else result
