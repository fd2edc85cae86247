"""Samplers: a filter and a temperature, which return a token, or the probabilities to draw it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.drawing import distribution
from veriformer.verify.forms.flattened import flatten_class
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.meanings import annotation_name
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.row_filters import settle_ties
from veriformer.verify.forms.score_domains import LOG_PROBS, PROBS, TAKES, as_scores, domain_note, domain_of
from veriformer.verify.forms.signatures import LOGITS, default_of, roles
from veriformer.verify.forms.stated_shapes import agreeing_layouts, stated_axes

_WORDS = {"sample", "sampling", "sampler", "nucleus", "multinomial"}
_PROBABILITIES = ({"logits", "probs"}, {"logits", "probabilities"}, {"sampling", "probs"}, {"next", "probs"})
"""Words of a function that returns the probabilities themselves."""

_OTHERS = {"beam", "dataset", "batch", "speculative", "random", "down", "up", "data", "rows"}
_SCORES = (*LOGITS, "next_token_logits", *PROBS, *LOG_PROBS)
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "temperature": ("temperature", "temp", "tau", "t"),
    "k": ("top_k", "k", "topk"),
    "p": ("top_p", "p", "nucleus_p"),
}
_GIVES = {"temperature_scale": "temperature", "top_k_filter": "k", "top_p_filter": "p"}
"""By operation, the argument without which a sampler does not do it."""

_DRAWS = ("sampler", "base_sampler", "inner_sampler", "sample_fn")
"""Usual names of what draws from the scores that a filter leaves."""

_METHODS = ("sample", "__call__", "forward")

ROWS = ("[B,V]", "[B,1,V]", "[V]", "[1,1,V]")
"""Shapes of a sampler's input: all rows at once, or one at a time."""


def _roles(candidate: Candidate) -> dict[str, str] | None:
    return roles(candidate.parameters, {"scores": _SCORES}, {**_OPTIONS, "draws": _DRAWS})


def _as_function(candidate: Candidate) -> Candidate | None:
    return candidate if candidate.is_function else flatten_class(candidate, _METHODS)


def _draw(logits: Tensor) -> Tensor:
    """Return one token for each row of logits."""
    rows = logits.reshape(-1, logits.shape[-1]).softmax(-1)
    return torch.multinomial(rows, 1).reshape(logits.shape[:-1])


def _match(candidate: Candidate, operation: str) -> Match | None:
    words = set(candidate.words)
    if not (words & _WORDS or _gives_probabilities(candidate)) or words & _OTHERS:
        return None
    function = _as_function(candidate)
    return None if function is None else _match_function(function, operation)


def _match_function(candidate: Candidate, operation: str) -> Match | None:
    p = candidate.parameters
    if not any(name in p for name in _OPTIONS[_GIVES[operation]]) or not any(name in p for name in _SCORES):
        return None
    found = _roles(candidate) or {}
    domain = domain_of(candidate, (found["scores"],))
    takes = (domain,) if domain else TAKES[::2]
    drawn = "what it may draw is judged, each draw being answered with every place in turn"
    given = "its probabilities are judged: which are above 0, and how they depend on the temperature"
    said = (given if _gives_probabilities(candidate) else drawn, *(domain and domain_note(domain)))
    rows = agreeing_layouts(ROWS, stated_axes(candidate, found["scores"]))
    return Match(True, {"takes": takes, "rows": rows}, said)


def _gives_probabilities(candidate: Candidate) -> bool:
    return any(one <= set(candidate.words) for one in _PROBABILITIES)


def _as_annotated(candidate: Candidate, name: str, value: Any) -> Any:
    """Return a number as a tensor if the argument is annotated so."""
    is_tensor = annotation_name(candidate.parameters[name]).rpartition(".")[2] == "Tensor"
    return torch.tensor(value) if is_tensor and isinstance(value, int | float) else value


def _neutral(role: str, classes: int, default: Any) -> Any:
    """Return the value of an option by which it does nothing."""
    if default is None:
        return None
    return {"temperature": 1.0, "k": classes, "p": 1.0}[role]


def _bind(candidate: Candidate, readings: Readings, operation: str) -> Callable[..., Tensor]:
    candidate = _as_function(candidate) or candidate
    names = _roles(candidate) or {}
    own = _GIVES[operation]
    others = {role: default_of(candidate.parameters, names[role]) for role in _OPTIONS if role in names and role != own}

    def call(logits: Tensor, value: Any) -> Tensor:
        if not isinstance(logits, Tensor) or not logits.is_floating_point() or not logits.numel() or logits.ndim < 1:
            raise NotOffered("logits: expected some numbers")
        if isinstance(value, Tensor):
            raise NotOffered(f"{own}: one for all rows is taken")
        rows = logits.detach().reshape(-1, logits.shape[-1])
        given = {names[role]: _neutral(role, rows.shape[-1], default) for role, default in others.items()}
        given[names[own]] = value
        given |= {names["draws"]: _draw} if "draws" in names else {}
        given = {name: _as_annotated(candidate, name, x) for name, x in given.items()}

        def sampler(some: Tensor) -> Any:
            scores = as_scores(some, readings["takes"])
            return candidate.thing(**{names["scores"]: _shaped(scores, readings["rows"])}, **given)

        of = _read_probabilities if _gives_probabilities(candidate) else distribution
        support, mass = of(sampler, rows, alone=readings["rows"] in ROWS[2:])
        if own == "temperature" and mass is None:
            raise NotOffered("its probabilities are not seen: it draws by noise")
        whole_nucleus = own != "p" and given.get(names.get("p", "")) == 1
        if whole_nucleus and _rounds_to_the_whole(rows, given.get(names.get("temperature", ""), 1.0)):
            raise NotOffered("logits: the sum of all others may round to the whole, which its nucleus ends with")
        if mass is not None and own == "temperature":
            return mass.to(logits.dtype).reshape(logits.shape)
        _told_by_support(rows)
        return torch.where(support.reshape(logits.shape), logits, torch.full_like(logits, -torch.inf))

    def named(**arguments: Any) -> Tensor:
        logits, value = arguments.values()
        return call(logits, value)

    return as_operation(operation, named)


def _read_probabilities(
    function: Callable[[Tensor], Any], rows: Tensor, *, alone: bool
) -> tuple[Tensor, Tensor | None]:
    """Return which probabilities ``[R, V]`` of a function of rows of scores are above 0, and the probabilities."""
    parts = [first(function(some)) for some in ((row[None] for row in rows) if alone else (rows,))]
    if not all(isinstance(part, Tensor) and part.is_floating_point() for part in parts):
        raise NotOffered("expected probabilities")
    found = torch.cat([part.detach().reshape(-1, part.shape[-1]) for part in parts])
    if found.shape != rows.shape:
        raise NotOffered("expected a probability for each score")
    return found > 0, found


def _told_by_support(rows: Tensor) -> None:
    """Raise NotOffered where a token that is kept has the probability 0 in its format: it is never drawn."""
    if bool((rows.softmax(-1) == 0).any()):
        raise NotOffered("logits: some are never drawn, whether they are kept or not")


def _rounds_to_the_whole(rows: Tensor, temperature: float) -> bool:
    """Return whether some probability at this temperature is below a rounding of the sum of all."""
    scaled = rows.double() / temperature if temperature > 0 else rows.double()
    return bool((scaled.softmax(-1) < rows.shape[-1] * torch.finfo(rows.dtype).eps).any())


def _shaped(rows: Tensor, kind: str) -> Tensor:
    if kind == "[V]":
        return rows[0]
    return rows if kind == "[B,V]" else rows[:, None]


FORMS = tuple(
    Form(
        name=f"functions/sampler_{own}",
        operation=operation,
        says="a function of logits (or probabilities), or a class, that draws one token for each row",
        conventions=() if own == "temperature" else ("choice.ties",),
        neutral=("rows", "takes"),
        beside=True,
        closed=True,
        match=partial(_match, operation=operation),
        bind=partial(_bind, operation=operation),
        settled=None if own == "temperature" else partial(settle_ties, operation=operation),
    )
    for operation, own in _GIVES.items()
)
