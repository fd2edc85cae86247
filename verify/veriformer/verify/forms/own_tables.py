"""Layers that hold the tables of their own rotary embedding, which are set so that they turn all by one angle."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.attention_calls import UNMASKED, has_tables
from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.form import NotOffered, Unfit
from veriformer.verify.forms.heads import FUSED, MASK_AXES, projections
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.layer_arguments import BATCH, arguments_of
from veriformer.verify.forms.rotation import ROWS, usual_tables
from veriformer.verify.forms.weights import linears

_TURNING = {"rope", "rotary", "freqs", "cos", "sin", "freq"}
"""Words of tables, and of parts, of a rotary embedding."""

PAIRINGS = ("halves", "side by side")
"""Pairs of entries of a head that are turned together."""

LENGTH = 6
"""Positions at which a layer is compared with attention with a rotary embedding."""

TURNED_ALIKE = (
    f"all turned by one angle: its own rotary embedding is right at {LENGTH} positions, and is not judged further",
)
"""Remark on a layer whose tables are set."""

_SET = "_turns_alike"
"""The attribute of a module whose tables are set."""


def find_turning(module: nn.Module) -> str:
    """Return the name of what a layer holds that turns queries and keys; empty where it holds nothing such."""
    held = [*(name for name, _ in module.named_buffers()), *(type(part).__name__ for part in module.modules())]
    held += [name for name, x in vars(module).items() if isinstance(x, Tensor)]
    return next((name for name in held if _TURNING & set(words(name.rpartition(".")[2]))), "")


def turn_alike(module: nn.Module, head_dim: int) -> nn.Module:
    """Set the tables of a layer, and what its parts give as tables, to a quarter turn at every position.

    A quarter turn is exact: what turns queries and keys alike leaves their products, and what turns one of them does
    not. What makes tables in another way turns as before. Raises NotOffered for tables of heads of odd width.
    """
    if head_dim % 2 and find_turning(module):
        raise NotOffered("num_heads: its rotary embedding turns pairs, and this head has an entry more")
    if getattr(module, _SET, False):
        return module
    for part in module.modules():
        for held in (part._buffers, vars(part)):
            for name, table in _find_tables(held):
                held[name] = _quarter(table, cosine="cos" in words(name))
        if part is not module and _TURNING & set(words(type(part).__name__)):
            part.register_forward_hook(lambda _, __, result: _quarter_of(result))
    setattr(module, _SET, True)
    return module


def _find_tables(held: Mapping[str, Any]) -> list[tuple[str, Tensor]]:
    """Return the tables among what a module holds: cosines, sines and complex numbers, by their names."""
    return [
        (name, x)
        for name, x in held.items()
        if isinstance(x, Tensor) and x.ndim > 1
        if (_TURNING if x.is_complex() else {"cos", "sin"}) & set(words(name))
    ]


def _quarter(table: Tensor, *, cosine: bool) -> Tensor:
    if table.is_complex():
        return torch.full_like(table, 1j)
    return torch.zeros_like(table) if cosine else torch.ones_like(table)


def _sines_of(result: Any) -> list[Tensor]:
    """Return the sines of what is a pair of cosines and sines, or what are numbers on the unit circle, if it is so."""
    if isinstance(result, Tensor) and result.is_complex():
        return [result] if nearly_equal(result.abs(), torch.ones_like(result.abs())) else []
    if not isinstance(result, tuple) or len(result) != 2 or not all(isinstance(x, Tensor) for x in result):
        return []
    cos, sin = result
    tables = cos.shape == sin.shape and nearly_equal(cos.square() + sin.square(), torch.ones_like(cos))
    return [sin] if tables else []


def _quarter_of(result: Any) -> Any:
    """Return tables of a quarter turn in place of those that a part gives."""
    if not _sines_of(result):
        return result
    if isinstance(result, Tensor):
        return _quarter(result, cosine=False)
    return _quarter(result[0], cosine=True), _quarter(result[1], cosine=False)


def refuse_turning(instance: nn.Module, names: Mapping[str, str]) -> None:
    """Raise Unfit for what turns queries and keys by its own, or by places, and is given no tables."""
    turning = find_turning(instance) or names.get("places", "")
    if turning and not has_tables(names):
        raise Unfit(f"it turns queries and keys by its own {turning!r}, which the contract's attention does not")


def settle_turning(
    candidate: Candidate, instance: nn.Module, names: Mapping[str, str], width: int, heads: int
) -> tuple[str, ...]:
    """Set the tables of a layer that turns queries and keys by its own, and return what is told of it.

    Raises Unfit where its own tables make no rotary embedding of it, and where it turns all the same when they are set.
    """
    turning = find_turning(instance) or names.get("places", "")
    if not turning or has_tables(names):
        return ()
    own = functools.partial(_call_usually, candidate, instance.eval(), names, heads)
    if not _turns_as_published(instance, own, width, heads):
        raise Unfit(f"it turns queries and keys by its own {turning!r}, and not as a rotary embedding does")
    turn_alike(instance, width // heads)
    if not _reads_no_order(own, width):
        raise Unfit(f"it turns queries and keys by its own {turning!r}, which the contract's attention does not")
    return TURNED_ALIKE


def _call_usually(
    candidate: Candidate, instance: nn.Module, names: Mapping[str, str], heads: int, x: Tensor
) -> Iterator[Tensor]:
    """Yield what a layer gives for ``[1, n, width]`` under each reading of the masks and places that it asks for."""
    masks = itertools.product(MASKS, MASK_AXES) if "mask" in names else [(MASKS[0], MASK_AXES[0])]
    for (mask, axes), rows in itertools.product(masks, ROWS if "places" in names else ROWS[:1]):
        readings = {"causal": UNMASKED, "batch": BATCH[0], "mask": mask, "mask_axes": axes, "rows": rows}
        with contextlib.suppress(Exception), torch.random.fork_rng(), torch.no_grad():
            head_dim = x.shape[-1] // heads
            yield first(instance(**arguments_of(x, {}, names, readings, candidate.parameters, heads, head_dim)))


def _reads_no_order(call: Callable[[Tensor], Iterator[Tensor]], width: int) -> bool:
    """Return whether the last position of a layer is the same in whatever order the tokens before it come."""
    x = torch.randn(1, LENGTH, width, generator=torch.Generator().manual_seed(0))
    pairs = zip(call(x), call(x[:, [3, 0, 4, 2, 1, 5]]), strict=False)
    return any(nearly_equal(one[:, -1], other[:, -1]) for one, other in pairs)


def _turns_as_published(
    instance: nn.Module, call: Callable[[Tensor], Iterator[Tensor]], width: int, heads: int
) -> bool:
    """Return whether the last position of a layer, which sees all, is that of attention with a rotary embedding, whose
    base is measured in the layer's tables."""
    generator = torch.Generator().manual_seed(0)
    x, *each = (
        torch.randn(*shape, width, generator=generator) for shape in ((1, LENGTH), (width,), (width,), (width,))
    )
    w = dict(zip("qkvo", (*each, torch.eye(width)), strict=True))
    maps = projections(linears(instance))
    orders = FUSED if maps.fused or "kv" in maps.maps else FUSED[:1]
    with contextlib.suppress(Exception), torch.no_grad():  # its maps or tables are of another shape
        for order in orders:
            for name, weight in maps.tensors(w, heads, heads, order).items():
                instance.get_parameter(name).copy_(weight)
            with _collect_tables(instance) as tables:
                found = [y[:, -1] for y in call(x)]
            base = _base_of(tables[0], width // heads)
            right = [_turned_attention(x, w, heads, base, kind)[:, -1] for kind in PAIRINGS]
            if any(nearly_equal(one, other) for one in found for other in right):
                return True
    return False


@contextlib.contextmanager
def _collect_tables(module: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the sines, or complex numbers, that a layer holds and that its parts give while it is called."""
    seen: list[Tensor] = []
    for part in module.modules():
        seen += [
            x for held in (part._buffers, vars(part)) for name, x in _find_tables(held) if "cos" not in words(name)
        ]
    parts = [part for part in module.modules() if part is not module and _TURNING & set(words(type(part).__name__))]
    hooks = [part.register_forward_hook(lambda _, __, result: seen.extend(_sines_of(result))) for part in parts]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _base_of(table: Tensor, head_dim: int) -> float:
    """Return the base of the angles that stand at position 1: the second of them is its ``-2 / head_dim``-th power."""
    row = table.squeeze()[1].flatten()
    angles = torch.unique(row.angle() if row.is_complex() else row.double().arcsin())
    return float(angles[-2] ** (-head_dim / 2))


def _turned_attention(x: Tensor, w: Mapping[str, Tensor], heads: int, base: float, pairing: str) -> Tensor:
    """Return attention of all positions over all, with queries and keys turned by their positions."""
    q, k, v = ((x @ w[role]).reshape(*x.shape[:2], heads, -1).transpose(1, 2) for role in "qkv")
    tables = usual_tables("pairs", q.shape[-1], x.shape[1], base)

    def turned(x: Tensor) -> Tensor:
        a, b = x.double().chunk(2, -1) if pairing == PAIRINGS[0] else (x.double()[..., 0::2], x.double()[..., 1::2])
        cos, sin = tables
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    weights = (turned(q) @ turned(k).transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
    result: Tensor = (weights @ v.double()).transpose(1, 2).flatten(2).to(x.dtype) @ w["o"]
    return result
