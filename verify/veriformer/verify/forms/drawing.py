"""The distribution that a sampler draws from, enumerated: each of its draws is answered with every index in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from veriformer.verify.forms.form import NotOffered

MOST = 1 << 20
"""Numbers that one call may be given."""

_TINY = 1e-30


class Answered(TorchFunctionMode):
    """Context in which ``multinomial`` returns the given indices, and exponential noise selects them.

    places: one for each row. weights: what the last ``multinomial`` was asked to draw by, None where noise was drawn.
    """

    def __init__(self, places: Tensor) -> None:
        super().__init__()
        self.places, self.asked = places, 0
        self.weights: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "multinomial":
            self.asked += 1
            return self._multinomial(args[0] if args else kwargs["input"])
        if name == "exponential_":
            self.asked += 1
            noise: Tensor = args[0]
            place = self.places.clamp(max=noise.shape[-1] - 1).reshape(*noise.shape[:-1], 1)
            return noise.fill_(1.0).scatter_(-1, place, _TINY)
        return func(*args, **kwargs)

    def _multinomial(self, weights: Tensor) -> Tensor:
        rows = weights.reshape(-1, weights.shape[-1])
        if rows.shape[0] != len(self.places):
            raise NotOffered("it draws for other rows than it was given")
        self.weights = rows
        places = self.places.clamp(max=rows.shape[-1] - 1)[:, None]
        return places.reshape(*weights.shape[:-1], 1)


def distribution(sampler: Callable[[Tensor], Any], logits: Tensor, *, alone: bool) -> tuple[Tensor, Tensor | None]:
    """Return a mask of the tokens that a sampler may draw for each row ``[R, V]``, and their probabilities where it
    shows its weights.

    sampler: from rows of scores to one token each. alone: whether it takes one row at a time. Raises NotOffered where
    it draws in another way.
    """
    rows, v = logits.shape
    if rows * v * v > MOST or (alone and rows * v > 256):
        raise NotOffered("logits: too many for every token to be asked for")
    each = logits.repeat_interleave(v, 0)
    places = torch.arange(v).repeat(rows)
    parts = [(each[i : i + 1], places[i : i + 1]) for i in range(len(each))] if alone else [(each, places)]
    tokens, weights, noisy = [], [], False
    for some, asked in parts:
        drawn, found = _drawn(sampler, some, asked)
        tokens.append(drawn)
        noisy = noisy or found is None
        weights.append(torch.ones(len(asked)) if found is None else found)
    token, weight = torch.cat(tokens).reshape(rows, v), torch.cat(weights).double().reshape(rows, v)
    if noisy:
        return torch.zeros(rows, v, dtype=torch.bool).scatter_(1, token, True), None
    mass = torch.zeros(rows, v, dtype=torch.float64).scatter_add_(1, token, weight)
    return mass > 0, mass


def _drawn(sampler: Callable[[Tensor], Any], logits: Tensor, places: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the tokens for these places, and the share of each place among the weights, 0 for one that is not
    there.
    """
    with Answered(places) as mode, torch.no_grad():
        result = sampler(logits)
    if mode.asked != 1:
        raise NotOffered(f"it draws {mode.asked} times, and once is understood")
    token = result[0] if isinstance(result, tuple | list) else result
    if not isinstance(token, Tensor) or token.is_floating_point() or token.numel() != len(places):
        raise NotOffered("it gives something else than one token for each row")
    token = token.reshape(-1).to(torch.int64)
    if bool((token < 0).any()) or bool((token >= logits.shape[-1]).any()):
        raise NotOffered("it gives tokens that there are not")
    if mode.weights is None:
        return token, None
    shares = mode.weights / mode.weights.sum(-1, keepdim=True)
    there = places < shares.shape[-1]
    share = shares.gather(1, places.clamp(max=shares.shape[-1] - 1)[:, None])[:, 0]
    return token, torch.where(there, share, torch.zeros_like(share))
