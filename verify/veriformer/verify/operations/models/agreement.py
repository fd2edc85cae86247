"""Two ways that must agree, held against the noise that rounding makes in both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import torch

from veriformer.verify.judging.judge import Floats, Reference, Violation, judge
from veriformer.verify.judging.trial import Outcome, Trial
from veriformer.verify.operations.models import noise
from veriformer.verify.operations.models.subject import Subject, subject
from veriformer.verify.scripts import model_calls as calls
from veriformer.verify.strategies import choice, seeds

Given = dict[str, Any]

EFFORT = 0.15
"""Examples of a whole model, as a multiple of the profile's: each stands for a dozen calls."""

LONGEST = 64
"""Tokens that every model admits."""


@dataclass(frozen=True)
class Answer:
    """What one way gave, cell by cell, and how far roundoff moves it, which is measured when it is asked for."""

    outcome: Outcome
    cells: list[Floats]
    measure: Callable[[], Floats]

    @cached_property
    def squares(self) -> Floats:
        """The mean squared deviation of every cell."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.measure()


class Examination:
    """One example of a whole model: it draws tokens, asks in several ways, and judges whether they agree."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.subject: Subject = subject(trial.target, trial.operation)
        self.seed: int = trial.draw(seeds())
        self.rng = np.random.default_rng(self.seed)
        self.B, self.n = trial.draw(choice((2, 7), (1, 5), (3, 9), (2, 12)))
        self._callable()

    def _callable(self) -> None:
        """Raise Violation where the model cannot be built or called: by a call on the record, for that is its fault."""
        try:
            _ = self.subject.vocabulary
        except Exception:
            ids = torch.zeros(1, 2, dtype=torch.int64)
            given: Given = {"ids": ids, **self.subject.source(ids)}
            self.ask("whole", **given)
            raise

    # Drawing

    def tokens(self, B: int | None = None, n: int | None = None) -> torch.Tensor:
        """Token ids [B, n]."""
        shape = (B or self.B, n or self.n)
        return torch.from_numpy(self.rng.integers(0, self.subject.vocabulary, shape))

    def other(self, ids: torch.Tensor) -> torch.Tensor:
        """Token ids that differ from these everywhere."""
        V = self.subject.vocabulary
        shift = torch.from_numpy(self.rng.integers(1, max(2, V), tuple(ids.shape)))
        return (ids + shift) % V

    def source(self, B: int | None = None) -> Given:
        """The source of an encoder–decoder, of another length than the target."""
        ids = self.tokens(B, self.trial.draw(choice(4, 6, 3)))
        return {**self.subject.source(ids)}

    def asked(self) -> Given:
        """Options of every call: the source, and who gives the positions."""
        positions = {} if self.subject.positions == "mask" else {"positions": self.subject.positions}
        return {**self.source(), **positions}

    def mask(self, side: str, n: int | None = None) -> torch.Tensor:
        """A mask [B, n] of ragged rows, padded on one side; one row is whole, and where there are more one is not."""
        n = n or self.n
        lengths = self.rng.integers(1, n + 1, self.B)
        lengths[int(self.rng.integers(self.B))] = n
        if self.B == 1 or (lengths == n).all():
            lengths[0] = 1 + self.rng.integers(max(1, n // 2))
        place = torch.arange(n)[None]
        kept = torch.from_numpy(lengths)[:, None]
        return (place < kept if side == "right" else place >= n - kept).long()

    def labels(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Labels with some, but not all, ignored; padding is."""
        labels = self.other(ids)
        ignored = torch.from_numpy(self.rng.random(tuple(ids.shape)) < 0.3)
        if mask is not None:
            ignored |= mask == 0
        labels[ignored] = -100
        labels[int(self.rng.integers(self.B)), -1 if mask is None or mask[:, -1].all() else 0] = 1
        return labels if mask is None else labels.masked_fill(mask == 0, -100)

    def split(self) -> int:
        """Where to cut the row in two."""
        return self.trial.draw(st.integers(1, self.n - 1))

    # Asking

    def ask(self, way: str, *, dtype: torch.dtype | None = None, **given: Any) -> Outcome:
        """Ask the model in one way, on the record."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.trial.call({"way": way, "dtype": dtype or self.subject.dtype, **given})

    def answer(
        self, way: str, *, runs: int = noise.RUNS, coarse: float = 0.0, afresh: bool = False, **given: Any
    ) -> Answer:
        """The same, with the noise of the answer. Raises Violation where it is not finite.

        afresh: of a copy of the model that has never been called.
        """
        outcome = self.ask(way, **(given | {"afresh": True} if afresh else given))
        return Answer(outcome, self.finite(outcome), partial(self._spread, way, given, runs, coarse))

    def _spread(self, way: str, given: Given, runs: int, coarse: float) -> Floats:
        moved = self.subject.moved(runs, coarse)
        return noise.spread(getattr(calls, way), given, self.subject.model(), moved, self.seed, coarse)

    def finite(self, outcome: Outcome) -> list[Floats]:
        """The cells of an answer. Raises Violation where one is not finite."""
        name, parts = outcome.name, outcome.value if isinstance(outcome.value, list) else [outcome.value]
        if not all(isinstance(part, torch.Tensor) and part.is_floating_point() and part.ndim for part in parts):
            raise Violation(
                "the logits are no floating-point tensor",
                lines=[f"raise SystemExit(0 if {name}.is_floating_point() else 'no floating-point tensor')"],
            )
        if not all(bool(part.isfinite().all()) for part in parts):
            listed = name if isinstance(outcome.value, list) else f"[{name}]"
            raise Violation(
                "the result is not finite",
                lines=[f"raise SystemExit(0 if all(x.isfinite().all() for x in {listed}) else 'not finite')"],
            )
        return noise.cells(outcome.value)

    # Judging

    def agree(self, one: Answer, two: Answer, what: str, *, more: float = 0.0) -> None:
        """Raise Violation unless two answers differ by no more than rounding explains. more: an error known besides."""
        if [x.shape for x in one.cells] != [x.shape for x in two.cells]:
            shapes = f"{_shape(one)} and {_shape(two)}"
            raise Violation(f"{what}: the results have shapes {shapes}", lines=[f"raise SystemExit({shapes!r})"])
        self.within(one, two, self._bound(one, two, more), what)

    def agreed(self, one: Answer, two: Answer, *, more: float) -> bool:
        """Whether ``agree`` would hold, without a judgement."""
        return bool((_distance(one, two) <= self._bound(one, two, more)).all())

    def _bound(self, one: Answer, two: Answer, more: float) -> Floats:
        """What the error known besides and rounding explain.

        Noise could only widen the bound: where the error known besides, or none at all, explains the distance, it is
        not measured.
        """
        bound = np.full(len(one.cells), more)
        if (_distance(one, two) > bound).any():
            bound += noise.factor(noise.RUNS, len(one.cells)) * np.sqrt(one.squares + two.squares)
        return bound

    def within(self, one: Answer, two: Answer, bound: Floats, what: str) -> None:
        """Raise Violation unless the distance of two answers lies within the bound in every cell."""
        distance = _distance(one, two)
        size = max((float(np.linalg.norm(cell)) for cell in two.cells), default=0.0)
        law = Reference(np.zeros(len(distance)), bound, scale=size, constant=True)
        names = one.outcome.name, two.outcome.name
        try:
            self.trial.effective.append(law.effective)
            judge(distance, law, self.trial.tally, what=what, lines=[])
        except Violation as violation:
            worst = int(np.argmax(distance / np.maximum(bound, np.finfo(float).tiny)))
            raise Violation(
                _message(what, distance[worst], bound[worst], float(np.linalg.norm(two.cells[worst]))),
                lines=_verdict(names, worst, float(bound[worst])),
                observed=float(distance[worst]),
                exact=0.0,
                bound=float(bound[worst]),
            ) from violation

    def live(self, **asked: Any) -> None:
        """Raise Violation where the logits do not depend on the tokens: such a model keeps every law of invariance."""
        ids = self.tokens(1)
        one = self.ask("whole", ids=ids, **_first(asked))
        two = self.ask("whole", ids=self.other(ids), **_first(asked))
        self.finite(one), self.finite(two)
        moved = one.value.shape == two.value.shape and not torch.equal(one.value, two.value)
        message = "other tokens give the same logits"
        self.trial.require(moved, message, f"not torch.equal({one.name}, {two.name})")
        self.trial.effective.clear()


def _first(asked: Mapping[str, Any]) -> Given:
    return {key: x[:1] if isinstance(x, torch.Tensor) else x for key, x in asked.items()}


def _distance(one: Answer, two: Answer) -> Floats:
    return np.asarray([np.linalg.norm(a - b) for a, b in zip(one.cells, two.cells, strict=True)])


def _shape(answer: Answer) -> str:
    value = answer.outcome.value
    return str(tuple(value.shape)) if isinstance(value, torch.Tensor) else str([tuple(x.shape) for x in value])


def _message(what: str, distance: float, bound: float, size: float) -> str:
    return (
        f"{what}: apart by {distance:.3g} where the result has size {size:.3g} and rounding explains {bound:.3g} "
        f"(ratio {distance / bound if bound else np.inf:.3g})"
    )


def _verdict(names: tuple[str, str], cell: int, bound: float) -> list[str]:
    one, two = (f"rows_of_result({name})[{cell}]" for name in names)
    return [
        "def rows_of_result(result):",
        "    parts = result if isinstance(result, list) else [result]",
        "    return [row for part in parts for row in part.detach().double().reshape(-1, part.shape[-1])]",
        "",
        f"distance = ({one} - {two}).norm().item()",
        f"bound = {bound!r}",
        'print("distance", distance, "explained by rounding", bound)',
        'raise SystemExit(0 if distance <= bound else "the two ways disagree")',
    ]


def lengthened(body: Callable[[Examination], None]) -> Callable[[Examination], None]:
    """The body of a check, and once more on one long text: some faults begin behind a length."""

    def both(e: Examination) -> None:
        body(e)
        e.B, e.n = 1, e.trial.draw(choice(LONGEST, LONGEST - 3))
        body(e)

    return both


def examined(body: Callable[[Examination], None]) -> Callable[[Trial], None]:
    """The body of a check from one that examines a model."""
    return lambda trial: body(Examination(trial))
