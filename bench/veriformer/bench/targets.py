"""Countable targets, by their names on the command line: the one module here that knows an implementation."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from veriformer.bench.metered_costs import Attention
from veriformer.bench.predicted_costs import AS_PRINTED, AS_PRINTED_WORD, IN_BLOCKS, IN_BLOCKS_WORD, Costs


@dataclass(frozen=True)
class Target:
    """Target of a count. attention, with the costs that it is held to, where it claims a way to compute it.

    skips_blocks: whether blocks that a causal mask hides as a whole are left out. provided: the object that carries the
    operations. variant: how it computes attention, where that is said.
    """

    name: str
    attention: Attention | None
    costs: Costs | None
    skips_blocks: bool
    provided: object = None
    variant: str | None = None

    @property
    def backend(self) -> tuple[Attention, Costs]:
        """Its attention, and the costs that it is held to. Raises LookupError where it claims no way to compute it."""
        if self.attention is None or self.costs is None:
            raise LookupError(f"target {self.name!r} claims no way in which attention is computed")
        return self.attention, self.costs

    def operation(self, name: str) -> Callable[..., Any] | None:
        """Return the operation of that name, or None where there is none."""
        if name == "attention" and self.attention is not None:
            return self.attention
        if name == "causal_lm" and _is_model(self.provided):
            return self.provided  # type: ignore[return-value]
        found = getattr(self.provided, name, None)
        return found if callable(found) else None


def _is_model(provided: object) -> bool:
    """Return whether a target is a model itself, or a class of models."""
    return isinstance(provided, torch.nn.Module) or (
        isinstance(provided, type) and issubclass(provided, torch.nn.Module)
    )


_SHIPPED: dict[str, tuple[str, Costs, bool]] = {
    "impl:reference": ("reference", AS_PRINTED, False),
    "impl:tiled": ("tiled", IN_BLOCKS, True),
    "impl:sdpa": ("sdpa", IN_BLOCKS, True),
}

# FlexAttention has a kernel where it is compiled; as it is called here, it computes every score.
_WAYS = {"impl:reference": AS_PRINTED_WORD, "impl:flex": AS_PRINTED_WORD} | dict.fromkeys(
    ("impl:tiled", "impl:sdpa"), IN_BLOCKS_WORD
)

NAMES = tuple(_SHIPPED)
OTHERS = ("impl", "impl:flex", "torch")


class UnknownTargetError(ValueError):
    """No such target; the message lists those there are."""


def find(name: str, variant: str | None = None) -> Target:
    """Return the target of that name, or in a file, a module or an attribute. Raises UnknownTargetError.

    variant: how it is said to compute attention, for one that does not ship.
    """
    if name.partition(":")[0] == "impl":
        return _own(name)
    if name == "torch":
        from veriformer.bench import torch_functional

        return Target(name, None, None, False, torch_functional, variant)
    try:
        return Target(name, None, None, False, _load(name), variant)
    except LoadingError as error:
        raise UnknownTargetError(f"{error}; or one of {', '.join((*NAMES, *OTHERS))}") from error


def _own(name: str) -> Target:
    from veriformer import impl

    if name == "impl":
        return Target(name, None, None, False, impl)
    backend = name.removeprefix("impl:")
    if backend not in impl.BACKENDS:
        raise UnknownTargetError(f"target {name!r}: expected one of {', '.join((*NAMES, *OTHERS))}")
    _, costs, skips_blocks = _SHIPPED.get(name, (backend, None, False))
    variant = _WAYS.get(name)
    return Target(name, impl.BACKENDS[backend], costs, skips_blocks, _By(backend), variant)


class _By:
    """Our operations, the model's attention by a backend."""

    def __init__(self, backend: str) -> None:
        from veriformer import impl

        self._impl, self.causal_lm = impl, partial(impl.causal_lm, attention=backend)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._impl, name)


def triton_attention() -> Attention:
    """Return our attention by its Triton kernels. Raises RuntimeError, which names the missing part."""
    from veriformer.impl import BACKENDS
    from veriformer.impl.attention_backends.flash.availability import require

    require()
    return BACKENDS["triton"]


def gpt_loss(*, vocabulary: int, width: int, layers: int, heads: int, length: int) -> torch.nn.Module:
    """Build our decoder in GPT-2's form with its loss: a module from ids `[B, n]` and labels to the mean loss."""
    from veriformer.impl.models.decoder import Decoder
    from veriformer.impl.models.families import gpt
    from veriformer.impl.training.objective import Objective

    class MeanLoss(Objective):
        def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return super().forward(ids, labels) / labels.numel()

    config = gpt(vocab_size=vocabulary, d_model=width, num_layers=layers, num_heads=heads, max_length=length)
    return MeanLoss(Decoder(config))


def adamw(params: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    """Build our AdamW with PyTorch's default options."""
    from veriformer.impl.optimization.adam import adamw as ours

    return ours(params, 1e-3)


def from_transformers(source: torch.nn.Module) -> Any:
    """Convert a model of transformers to ours, with its weights."""
    from veriformer.impl.interop import from_transformers as ours

    return ours(source)


def compiled_decoder(model: Any) -> Any:
    """Compile our model's single-token step to one graph."""
    from veriformer.impl.generation.compiled import CompiledDecoder

    return CompiledDecoder(model)


def generate(model: Any, ids: torch.Tensor, new: int) -> torch.Tensor:
    """Continue greedily with our static cache: `[B, n + new]`."""
    from veriformer.impl.generation.generate import generate as ours

    return ours(model, ids, max_new_tokens=new)


class LoadingError(ValueError):
    """The target cannot be loaded; the message says what was expected, what was found and what to do."""


def _load(word: str) -> object:
    """Return a file (``path/to/mine.py``), a dotted module, or an attribute of either (``pkg.mod:thing``).

    Raises LoadingError with the reason for anything that cannot be loaded, whatever it raised.
    """
    try:
        place, _, attribute = word.partition(":") if not Path(word).exists() else (word, "", "")
        module = _file(place) if place.endswith(".py") else _module(place)
        return getattr(module, attribute) if attribute else module
    except LoadingError:
        raise
    except Exception as error:
        raise LoadingError(f"target {word!r}: raised {type(error).__name__} while it was loaded: {error}") from error


def _file(place: str) -> ModuleType:
    path = Path(place).resolve()
    found = importlib.util.spec_from_file_location(path.stem, path) if path.is_file() else None
    if found is None or found.loader is None:
        raise LoadingError(f"target {place!r}: expected a Python file, found none at {path}; check the path")
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.parent))  # a file may import its neighbours, as a script may
    sys.modules.setdefault(path.stem, module)
    found.loader.exec_module(module)
    return module


def _module(place: str) -> ModuleType:
    if not all(part.isidentifier() for part in place.split(".")) or importlib.util.find_spec(place) is None:
        raise LoadingError(
            f"target {place!r}: expected a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing)"
        )
    return importlib.import_module(place)
