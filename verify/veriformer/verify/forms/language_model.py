"""Language models under the contract's call: ``model(ids)`` returns an object with logits for every token."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.caches_inside import Placing, begun, goes_on
from veriformer.verify.forms.encoder_decoder import Masks

OPTIONS = ("attention_mask", "labels", "past_key_values", "use_cache")
"""Optional arguments of a call besides the tokens, as far as the code has them."""


@dataclass(frozen=True)
class Calling:
    """Signature of a language model's call. ids, targets, past, cached: its names of the tokens, of the targets, of a
    cache that it goes on from, and of the flag that asks for one; empty where it has none. source: its name of the
    tokens that an encoder reads. last: whether it gives the logits of the last token alone, so that a call is made for
    each. placing: how it is told positions where it holds its cache inside. masks: those that it demands with a source.
    tokens_first: whether it takes tokens as [n, B], and gives logits [n, B, V].

    always: further arguments that it demands. fed: whether it gives the logits of every token only with targets, which
    are then the tokens themselves. masked: whether it takes an ``attention_mask``. labels, ignored: how targets are
    made from labels where it gives a loss; labels is empty where it gives none. writer: the function beside the class
    that writes texts with it, as its method ``generate``; empty where it has a method of its own, or there is none.
    """

    ids: str
    targets: str = ""
    past: str = ""
    cached: str = ""
    always: Mapping[str, Any] = field(default_factory=dict)
    fed: bool = False
    masked: bool = False
    labels: str = ""
    ignored: int = -100
    source: str = ""
    last: bool = False
    placing: Placing | None = None
    masks: Masks | None = None
    tokens_first: bool = False
    writer: str = ""

    def of_source(self, ids: Tensor) -> dict[str, Tensor]:
        """Return the arguments beside targets [B, n]: the tokens of the source, and masks."""
        if not self.source:
            return {}
        source = source_tokens(ids.shape[0])
        masks = {} if self.masks is None else self.masks.given(ids, source.shape[1])
        return {self.source: source, **masks}

    @property
    def options(self) -> tuple[str, ...]:
        """Members of ``OPTIONS`` that a call takes."""
        cached = bool(self.past) or self.placing is not None
        has = (self.masked, bool(self.labels), cached, cached)
        return tuple(name for name, there in zip(OPTIONS, has, strict=True) if there)


class LanguageModel(nn.Module):
    """A model that wraps another, see ``wrap_model``. kept: the number of tokens of the vocabulary that are judged."""

    def __init__(self, inner: nn.Module, calling: Calling, vocabulary: int, kept: int | None = None) -> None:
        super().__init__()
        self.inner, self.calling, self.vocabulary, self.kept = inner, calling, vocabulary, kept or vocabulary

    def _apply(self, fn: Any, recurse: bool = True) -> LanguageModel:
        """Apply to every tensor, but keep complex buffers complex: a conversion to a real dtype would drop half of
        them.
        """
        tables = {name: x for name, x in self.named_buffers() if x.is_complex()}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        like = next((p.dtype for p in self.parameters() if p.is_floating_point()), torch.float32)
        for name, x in tables.items():
            owner, _, own = name.rpartition(".")
            wide = torch.complex128 if like == torch.float64 else torch.complex64
            self.get_submodule(owner)._buffers[own] = x.to(wide)
        return self

    def answer(self, ids: Tensor, **given: Any) -> SimpleNamespace:
        """Return logits [B, n, V] of tokens [B, n]; with labels the loss; on request the cache."""
        how = self.calling
        if how.tokens_first:
            rows = ids.t().contiguous()
            result = self.inner(**{how.ids: rows}, **how.always)
            logits = logits_among(result, rows, self.vocabulary)
            if logits is None:
                raise ValueError(f"expected logits of shape {(*rows.shape, self.vocabulary)}, got {shapes(result)}")
            return SimpleNamespace(logits=logits[..., : self.kept].transpose(0, 1))
        if how.last:
            return SimpleNamespace(logits=self._one_by_one(ids, given.get("attention_mask")))
        arguments = {**how.always, **how.of_source(ids)}
        if given.get("attention_mask") is not None:
            arguments["attention_mask"] = given["attention_mask"]
        labels = given.get("labels")
        if labels is not None:
            arguments[how.targets] = targets_of(labels, how)
        elif how.fed:
            arguments[how.targets] = ids.contiguous()  # targets are often given another shape by view
        if how.past:
            past = given.get("past_key_values")
            arguments |= {} if past is None else {how.past: past}
            arguments |= {how.cached: bool(given.get("use_cache")) or past is not None} if how.cached else {}
        held, arguments[how.ids] = None, ids
        if how.placing is not None and (how.placing.needed or given.get("use_cache") or given.get("past_key_values")):
            begin = given.get("past_key_values") or begun(self.inner, how.placing, len(ids))
            kept = bool(given.get("use_cache")) or begin.length > 0
            with torch.set_grad_enabled(torch.is_grad_enabled() and not kept):  # it is written over in place
                result, held = goes_on(self.inner, how.placing, begin, arguments, ids.shape[1])
        else:
            result = self.inner(**arguments)
        logits = logits_among(result, ids, self.vocabulary)
        if logits is None and labels is not None and loss_among(result, self.inner) is not None:
            # It gives the loss alone: its logits are those of a call without targets.
            asked = {name: value for name, value in arguments.items() if name != how.targets}
            logits = logits_among(self.inner(**asked), ids, self.vocabulary)
        if logits is None:
            raise ValueError(f"expected logits of shape {(*ids.shape, self.vocabulary)}, got {shapes(result)}")
        loss = loss_among(result, self.inner) if labels is not None else None
        cache = held or cache_among(result, logits) if given.get("use_cache") else None
        return SimpleNamespace(logits=logits[..., : self.kept], loss=loss, past_key_values=cache)

    def _one_by_one(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return the logits of the last token of every beginning of the rows."""
        found = []
        for end in range(1, ids.shape[1] + 1):
            arguments = {**self.calling.always, **self.calling.of_source(ids[:, :end])}
            if mask is not None:
                arguments["attention_mask"] = mask[:, :end]
            result = self.inner(**{self.calling.ids: ids[:, :end]}, **arguments)
            last = last_among(result, ids.shape[0], self.vocabulary)
            if last is None:
                raise ValueError(f"expected logits of shape {(len(ids), self.vocabulary)}, got {shapes(result)}")
            found.append(last)
        return torch.stack(found, 1)[..., : self.kept]


def source_tokens(batch: int, n: int = 6) -> Tensor:
    """Return the tokens that an encoder reads in every call: a few, the same in every row."""
    return torch.arange(1, n + 1).expand(batch, n).contiguous()


def wrap_model(inner: nn.Module, calling: Calling, vocabulary: int, kept: int | None = None) -> LanguageModel:
    """Return the model under the contract's call, with an argument for each option that it has."""
    return _kind(calling.options)(inner, calling, vocabulary, kept)


@functools.cache
def _kind(options: Sequence[str]) -> type[LanguageModel]:
    def forward(self: LanguageModel, ids: Tensor, **given: Any) -> SimpleNamespace:
        return self.answer(ids, **given)

    P = inspect.Parameter
    shown = [P(name, P.POSITIONAL_OR_KEYWORD) for name in ("self", "ids")]
    shown += [P(name, P.KEYWORD_ONLY, default=None) for name in options]
    forward.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return type("LanguageModel", (LanguageModel,), {"forward": forward})


def targets_of(labels: Tensor, how: Calling) -> Tensor:
    """Shift labels [B, n] to next tokens, unless the code shifts them inside; replace −100 by its ignored index."""
    if how.labels != "shifted inside":
        labels = torch.cat((labels[:, 1:], torch.full_like(labels[:, :1], -100)), 1)
    return labels.masked_fill(labels == -100, how.ignored).contiguous()


def _parts(result: Any) -> list[Any]:
    if isinstance(result, Mapping):
        return list(result.values())
    if isinstance(result, tuple | list):
        return list(result)
    return [result] if isinstance(result, Tensor) else list(getattr(result, "__dict__", {}).values())


def logits_among(result: Any, ids: Tensor, vocabulary: int) -> Tensor | None:
    """Return the tensor [B, n, V] among what was returned; one of [B n, V] is given its shape."""
    shape = (*ids.shape, vocabulary)
    parts = [x for x in _parts(result) if isinstance(x, Tensor) and x.is_floating_point()]
    for x in parts:
        if tuple(x.shape) == shape:
            return x
    flat = next((x for x in parts if tuple(x.shape) == (ids.numel(), vocabulary)), None)
    return None if flat is None else flat.reshape(shape)


def last_among(result: Any, batch: int, vocabulary: int) -> Tensor | None:
    """Return the tensor [B, V] or [B, 1, V] among what was returned."""
    parts = [x for x in _parts(result) if isinstance(x, Tensor) and x.is_floating_point()]
    found = next((x for x in parts if tuple(x.shape) in ((batch, vocabulary), (batch, 1, vocabulary))), None)
    return None if found is None else found.reshape(batch, vocabulary)


def loss_among(result: Any, model: nn.Module) -> Tensor | None:
    """Return the one number among what was returned, or the one that the model keeps as its last loss."""
    known = [*_parts(result), getattr(model, "last_loss", None)]
    return next((x for x in known if isinstance(x, Tensor) and x.is_floating_point() and x.numel() == 1), None)


def cache_among(result: Any, logits: Tensor) -> Any:
    """Return the result besides logits and loss, such as a cache; None where there is nothing."""
    others = [x for x in _parts(result) if x is not None and not (isinstance(x, Tensor) and x.numel() == 1)]
    others = [x for x in others if x is not logits and getattr(x, "shape", None) != logits.shape]
    return others[0] if others and not isinstance(result, Tensor) else None


def shapes(result: Any) -> str:
    """Return the shapes of all that was returned."""
    found = [tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__ for x in _parts(result)]
    return str(found[0]) if isinstance(result, Tensor) else str(found)
