"""What token embeddings and the head of a language model share: the table of a vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from veriformer.verify.judging.operation import Refusal
from veriformer.verify.judging.trial import Arguments, Observation, Trial
from veriformer.verify.scripts.script import literal
from veriformer.verify.strategies import sizes, values, widths


def table(trial: Trial) -> torch.Tensor:
    """A table [V, d]; V and d are seldom equal."""
    return trial.tensor(trial.draw(values()).array(trial.draw(sizes(1, 7)), trial.draw(widths(5))))


def bad_tables(a: Arguments, first: str) -> Iterator[Refusal]:
    """Tables that both operations refuse."""
    yield Refusal(f"no {first}", {**a, first: None}, (first,))
    yield Refusal("no table", {**a, "weight": None}, ("weight",))
    yield Refusal("a vector for a table", {**a, "weight": a["weight"][0]}, ("weight",))
    yield Refusal("a table of rank 3", {**a, "weight": a["weight"][None]}, ("weight",))


def equals_exactly(trial: Trial, y: Observation, wanted: torch.Tensor, message: str) -> None:
    """Raise Violation unless a result is exactly this."""
    trial.require(torch.equal(y.value, wanted), message, f"torch.equal({y.expression}, {literal(wanted)})")
