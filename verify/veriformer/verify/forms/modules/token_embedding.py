"""An embedding as a module that holds its table, perhaps scaled by the root of its width."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.holding import Holder, call_with_weights
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.signatures import first_input

_SCALES = ("as it is", "times √d")
_NAMES = ({"embedding"}, {"embeddings"}, {"embed"}, {"embedder"})
_OTHERS = {"position", "positional", "patch", "rotary", "segment", "sinusoidal", "timestep", "time", "rope"}


def _match(candidate: Candidate) -> Match | None:
    words = set(candidate.words)
    if not candidate.is_network or words & _OTHERS or not any(names <= words for names in _NAMES):
        return None
    if first_input(candidate.parameters) is None and not issubclass(candidate.thing, nn.Embedding):
        return None
    made = built(candidate, _sizes(11, 6))
    shapes = [tuple(p.shape) for p in made.parameters()]
    if shapes != [(11, 6)]:
        return None
    pad = _padding(made)
    return Match(True, {"scale": _SCALES}, () if pad is None else (f"row {pad}, its padding, is left out",))


def _padding(module: nn.Module) -> int | None:
    """Return the row that stands for padding and gets no gradient; others are judged, and it is left out."""
    found = (getattr(part, "padding_idx", None) for part in module.modules())
    return next((pad for pad in found if isinstance(pad, int)), None)


def _sizes(vocabulary: int, width: int) -> dict[str, int]:
    return {"vocabulary": vocabulary, "width": width, "length": 64}


def _power_of_four(width: int) -> int:
    """Return the table's width, so that its rows times √d scale by a power of two, which division undoes exactly."""
    found = 1
    while found < width:
        found *= 4
    return found


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    def call(ids: Tensor, weight: Tensor) -> Tensor:
        if weight.ndim != 2 or ids.is_floating_point():
            raise NotOffered("ids, weight: expected integers and rank 2")
        count, width = weight.shape
        scaled = readings["scale"] == _SCALES[1]
        if scaled:
            weight = nn.functional.pad(weight, (0, _power_of_four(width) - width))
        module = Holder.of(candidate).module(_sizes(*weight.shape), weight.dtype)
        pad = _padding(module)
        table = weight
        if pad is not None:
            module = Holder.of(candidate).module(_sizes(count + 1, weight.shape[1]), weight.dtype)
            table = torch.cat((weight[:pad], torch.zeros_like(weight[:1]), weight[pad:]))
            ids = ids.to(torch.int64) + (ids >= pad)
        name = next(name for name, _ in module.named_parameters())
        result: Tensor = call_with_weights(module, {name: table}, ids)
        return result[..., :width] / weight.shape[1] ** 0.5 if scaled else result

    return as_operation("token_embedding", call)


FORM = Form(
    name="modules/token_embedding",
    operation="token_embedding",
    says="a module with a table, built from vocabulary and width: embedding(ids)",
    match=_match,
    bind=_bind,
)
