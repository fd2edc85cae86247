"""Matching and calls of networks, shared by their forms: linear maps, one of them perhaps a gate, filled up to the
module's sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built, flags
from veriformer.verify.forms.form import NotOffered, Unfit
from veriformer.verify.forms.holding import Holder, call_with_weights, first
from veriformer.verify.forms.signatures import first_input
from veriformer.verify.forms.weights import HELD, Linear, is_held_alone, linears

WIDTH, INNER = 6, 20
"""Sizes of the instance that shows which parameters there are; both even, and neither a multiple of the other."""

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "GELU": nn.functional.gelu,
    "GELU by tanh": lambda z: nn.functional.gelu(z, approximate="tanh"),
    "ReLU": torch.relu,
}
"""Activations that the formulas know."""

OTHER_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "the square of ReLU": lambda z: torch.relu(z) ** 2,
    "a sigmoid of 1.702 z": lambda z: z * torch.sigmoid(1.702 * z),
    "leaky ReLU": nn.functional.leaky_relu,
    "ELU": nn.functional.elu,
    "SELU": nn.functional.selu,
    "softplus": nn.functional.softplus,
    "Mish": nn.functional.mish,
}
"""Activations that they do not: a network with one of them is another one."""

WORDS = (
    *({"ffn"}, {"mlp"}, {"ff"}, {"feed", "forward"}, {"feed", "foward"}, {"feedforward"}, {"positionwise"}),
    *({"position", "wise"}, {"expert"}),
)
_OTHERS = (nn.Softmax, nn.LogSoftmax)
_LARGEST = 1024
"""So wide is a module made at most to hold the weights that are given: beyond it, making one takes too long."""

_MATRIX = 2**23
"""Maximum number of entries of a matrix: by a wrong reading of a matrix no width is large enough."""


def is_network_by_name(candidate: Candidate) -> bool:
    """Return whether a class is a network by its name, and takes its input alone."""
    named = any(words <= set(candidate.words) for words in WORDS) or candidate.words[-1:] in (("glu",), ("swiglu",))
    return candidate.is_network and named and first_input(candidate.parameters) is not None


def instance(candidate: Candidate) -> nn.Module:
    """Build an instance that shows which parameters there are. Raises Unfit where none can be built."""
    made = built(candidate, sizes_for(WIDTH, INNER), flags(candidate))
    if not isinstance(made, nn.Module):
        raise Unfit("it builds no module")
    other = next((part for part in made.modules() if isinstance(part, _OTHERS)), None)
    if other is not None:
        raise Unfit(f"it has a {type(other).__name__}, which has no part in the operation")
    return made


def sizes_for(width: int, inner: int) -> dict[str, Any]:
    """Return sizes by their names in constructors."""
    return {"width": width, "out": width, "inner": inner, "heads": 2, "length": 16, "layers": 2, "vocabulary": 13}


def network_called(
    candidate: Candidate,
    needs: tuple[int, int, int],
    tensors: Callable[[list[Linear]], Mapping[str, Tensor]],
    x: Tensor,
    held: str = HELD[0],
) -> Tensor:
    """Return the network on rows x with these tensors. needs: widths of input, hidden layer and result. held: how
    matrices are that stand among its own parameters.

    Where the module's sizes are tied to each other, one that is large enough is made: what is more is zero, and adds
    nothing to any sum.
    """
    d, f, o = needs
    module = _large_enough(Holder.of(candidate), (d, f, o), x.dtype, flags(candidate), held)
    parts = linears(module, held)
    width = _ends(parts)[0].n_in
    result: Tensor = first(call_with_weights(module, tensors(parts), nn.functional.pad(x, (0, width - d))))
    return result[..., :o]


def around_hidden(parts: Sequence[Linear]) -> tuple[list[Linear], Linear] | None:
    """Return the maps into the hidden layer and the one out of it: of three that is the one whose shape no other has.
    None where that cannot be told.
    """
    if len(parts) == 2:
        return [parts[0]], parts[1]
    shapes = [(part.n_in, part.n_out) for part in parts]
    alone = [part for part, shape in zip(parts, shapes, strict=True) if shapes.count(shape) == 1]
    if len(parts) != 3 or len(alone) != 1:
        return None
    return [part for part in parts if part is not alone[0]], alone[0]


def _ends(parts: Sequence[Linear]) -> tuple[Linear, Linear]:
    """Return a map into the hidden layer, and the one out of it. Where widths are all the same, any two will do."""
    into, out = around_hidden(parts) or (parts, parts[-1])
    return into[0], out


def readings_of(parts: Sequence[Linear]) -> dict[str, tuple[str, ...]]:
    """Return the readings of the matrices' orientation, where some stand among the module's own parameters."""
    return {"held": HELD} if any(map(is_held_alone, parts)) else {}


def _large_enough(
    holder: Holder, needs: tuple[int, int, int], dtype: torch.dtype, given: Mapping[str, Any], held: str
) -> nn.Module:
    d, f, o = needs
    width, inner = max(d, o), f
    before: list[tuple[int, int]] = []
    while width <= _LARGEST and width * inner <= _MATRIX:
        try:
            module = holder.module(sizes_for(width, inner), dtype, **given)
        except NotOffered:  # one that halves a size demands an even one
            if width % 2 == inner % 2 == 0:
                raise
            width, inner = width + width % 2, inner + inner % 2
            continue
        parts = linears(module, held)
        if before == [(part.n_in, part.n_out) for part in parts]:  # whatever it is built from, it grows no more
            break
        before = [(part.n_in, part.n_out) for part in parts]
        into, out = _ends(parts)
        hidden = out.n_in
        if into.n_in >= d and hidden >= f and out.n_out >= o:
            return module
        width += 1 if width < 8 else width // 2
        inner += (1 if inner < 8 else inner // 2) if hidden < f else 0
    raise NotOffered(f"no instance holds {d} × {f} × {o}")
