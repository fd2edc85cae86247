"""Two ways that must agree, held against the noise that rounding makes in both."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Floats, Reference, Violation, assert_within_bound, ratios
from veriformer.verify.judging.outcome import Outcome
from veriformer.verify.judging.trial import Trial
from veriformer.verify.operations.models import decision, noise
from veriformer.verify.operations.models.answer import Answer, differences, distance_of, telling_much
from veriformer.verify.operations.models.drawn import LONGEST, DrawnInputs, Given
from veriformer.verify.scripts import model_drivers as calls
from veriformer.verify.strategies import choice

EFFORT = 0.15
"""Examples of a whole model, as a multiple of the profile's: each stands for a dozen calls."""

LOUD = 2.0**6
"""Factor on hidden embeddings, by which a leak is amplified."""


class ModelExample(DrawnInputs):
    """Example of a whole model: it draws tokens, computes logits in several ways, and judges their agreement."""

    def __init__(self, trial: Trial) -> None:
        super().__init__(trial)
        self._callable()
        self.loudness = self.faint if self.subject.scalable else 1.0

    def _callable(self) -> None:
        """Raise Violation where the model cannot be built or called: by a call on the record, for that is its fault."""
        try:
            _ = self.subject.vocabulary
        except Exception:
            ids = torch.zeros(1, 2, dtype=torch.int64)
            given: Given = {"ids": ids, **self.subject.source(ids)}
            self.ask("whole", **given)
            raise

    # Asking

    def ask(self, way: str, *, dtype: torch.dtype | None = None, **given: Any) -> Outcome:
        """Ask the model in one way, on the record."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.trial.call({"way": way, "dtype": dtype or self.subject.dtype, **given})

    def answer(self, way: str, *, coarse: float = 0.0, afresh: bool = False, **given: Any) -> Answer:
        """Ask in one way and return the answer with its noise. Raises Violation where it is not finite.

        afresh: of a copy of the model that has never been called.
        """
        outcome = self.ask(way, **(given | {"afresh": True} if afresh else given))
        return Answer(outcome, self.finite(outcome), self._noise(way, given, coarse))

    def _noise(self, way: str, given: Given, coarse: float = 0.0) -> noise.Spread:
        def moved(number: int) -> torch.nn.Module:
            return self.subject.moved(number, coarse)

        return noise.Spread(getattr(calls, way), given, self.subject.model(), moved, self.seed, coarse)

    def finite(self, outcome: Outcome) -> list[Floats]:
        """Return the cells of an answer. Raises Violation where one is not finite."""
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
        self._judge_shapes(one, two, what)
        self.within(one, two, self.bound(one, two, more), what)

    def unseen(self, ids: torch.Tensor, hidden: torch.Tensor, places: torch.Tensor, what: str, **given: Any) -> None:
        """Raise Violation where tokens that are ``hidden`` [B, n] from some ``places`` [B, n] move the logits there.

        Nothing may flow, so nothing need be estimated: with other tokens, or louder ones, the same kernels run on the
        same numbers and give the same bits, and the gradient is zero. Only what is not is held against rounding, as
        where a convolution by FFT brings everything together and takes it apart again.
        """
        others = torch.where(hidden, self.other(ids), ids)
        plain, other = (self.answer("at", ids=x, places=places, **given) for x in (ids, others))
        self.vanishes(other, plain, f"{what}, with other tokens there")
        if self.subject.scalable:
            self._unheard(ids, hidden, what, {"places": places, **given})
        self.unreached(ids, hidden, f"gradient for tokens that {what} may not depend on", places=places, **given)

    def _unheard(self, ids: torch.Tensor, hidden: torch.Tensor, what: str, given: Given) -> None:
        usual = float(given.get("loudness", 1.0))
        loud, quiet = ({"ids": ids, **given, "loudness": torch.where(hidden, x, usual)} for x in (LOUD, usual))
        one, two = (self.ask("at", **asked) for asked in (loud, quiet))
        if all(isinstance(x.value, torch.Tensor) and bool(x.value.isfinite().all()) for x in (one, two)):
            heard, unheard = (
                Answer(x, noise.cells(x.value), self._noise("at", asked)) for x, asked in ((one, loud), (two, quiet))
            )
            self.vanishes(heard, unheard, f"{what}, with louder tokens there")

    def unreached(self, ids: torch.Tensor, hidden: torch.Tensor, what: str, **given: Any) -> None:
        """Raise Violation where a gradient reaches tokens that are hidden."""
        given = {"ids": ids, "seed": self.seed, **given}
        outcome = self.ask("influence", **given)
        if len(outcome.value) and bool(outcome.value.isfinite().all()):
            reached = Answer(outcome, noise.cells(outcome.value), self._noise("influence", given))
            self.vanishes(reached.part(hidden.flatten().numpy()), None, what)

    def vanishes(self, one: Answer, two: Answer | None, what: str) -> None:
        """Raise Violation where what two calls differ in makes a difference, or without a second, the first is none.

        Where the bits are equal nothing is left to be shown; else the mean of perturbed runs of both may not be
        further from zero than its own spread explains.
        """
        zeros = [np.zeros_like(x) for x in one.cells]
        other = two or Answer(one.outcome, zeros, one.noise, one.some, "0 * ")
        self._judge_shapes(one, other, what)
        distance = distance_of(one, other)
        bound = np.zeros(len(distance))
        if distance.any():
            mean, explained = decision.vanishing(lambda number: differences(one, two, number))
            bound = np.where(mean > explained, explained, np.maximum(distance, explained))
        self.within(one, other, bound, what, telling=True)

    def _judge_shapes(self, one: Answer, two: Answer, what: str) -> None:
        if [x.shape for x in one.cells] != [x.shape for x in two.cells]:
            shapes = f"{_shape(one)} and {_shape(two)}"
            raise Violation(f"{what}: the results have shapes {shapes}", lines=[f"raise SystemExit({shapes!r})"])

    def bound(self, one: Answer, two: Answer, more: float = 0.0) -> Floats:
        """Return the distance of each cell that rounding and an error known besides, ``more``, explain.

        Noise could only widen the bound: where the error known besides, or none at all, explains the distance, it is
        not measured.
        """
        distance = distance_of(one, two)
        if (distance <= more).all():
            return np.full(len(one.cells), more)
        bound = decision.decided(distance, lambda runs: one.squares(runs) + two.squares(runs), more=more)
        few = np.sqrt(one.squares(noise.RUNS) + two.squares(noise.RUNS))
        suspected, dull = distance > more + decision.SMALL * few, not telling_much(one, two, bound)
        if (distance > bound).any() or not (suspected.any() or dull):
            return bound
        mean, explained = decision.vanishing(lambda number: differences(one, two, number), more=more, wholly=dull)
        sharp = np.minimum(bound, explained)
        return np.where((mean > explained) & suspected, sharp, np.maximum(distance, sharp) if dull else bound)

    def within(self, one: Answer, two: Answer, bound: Floats, what: str, *, telling: bool | None = None) -> None:
        """Raise Violation unless the distance of two answers lies within the bound in every cell.

        telling: whether that shows anything, where the sizes of bound and cells do not say so.
        """
        distance = distance_of(one, two)
        size = max((float(np.linalg.norm(cell)) for cell in two.cells), default=0.0)
        law = Reference(np.zeros(len(distance)), bound, scale=size, constant=True)
        try:
            self.trial.effective.append(telling_much(one, two, bound) if telling is None else telling)
            assert_within_bound(distance, law, self.trial.statistics, what=what, lines=[])
        except Violation as violation:
            worst = int(np.argmax(ratios(distance, law)))
            raise Violation(
                _message(what, distance[worst], bound[worst], float(np.linalg.norm(two.cells[worst]))),
                lines=_verdict(one.row(worst), two.row(worst), float(bound[worst])),
                observed=float(distance[worst]),
                exact=0.0,
                bound=float(bound[worst]),
            ) from violation

    def assert_not_constant(self, **asked: Any) -> None:
        """Raise Violation where the logits do not depend on the tokens: such a model keeps every law of invariance."""
        ids = self.tokens(1)
        one = self.ask("whole", ids=ids, **_first(asked))
        two = self.ask("whole", ids=self.other(ids), **_first(asked))
        self.finite(one), self.finite(two)
        moved = one.value.shape == two.value.shape and not torch.equal(one.value, two.value)
        message = "other tokens give the same logits"
        self.trial.assert_true(moved, message, f"not torch.equal({one.name}, {two.name})")
        self.trial.effective.clear()


def _first(asked: Mapping[str, Any]) -> Given:
    return {key: x[:1] if isinstance(x, torch.Tensor) else x for key, x in asked.items()}


def _shape(answer: Answer) -> str:
    value = answer.outcome.value
    return str(tuple(value.shape)) if isinstance(value, torch.Tensor) else str([tuple(x.shape) for x in value])


def _message(what: str, distance: float, bound: float, size: float) -> str:
    return (
        f"{what}: apart by {distance:.3g} where the result has size {size:.3g} and rounding explains {bound:.3g} "
        f"(ratio {distance / bound if bound else np.inf:.3g})"
    )


def _verdict(one: str, two: str, bound: float) -> list[str]:
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


def lengthened(body: Callable[[ModelExample], None]) -> Callable[[ModelExample], None]:
    """Return the property test, and once more on long texts: some faults begin behind a length."""

    def both(e: ModelExample) -> None:
        body(e)
        e.B, e.n = e.trial.draw(choice(1, 1, 3)), e.trial.draw(choice(LONGEST, LONGEST - 3))
        body(e)

    return both


def model_property(body: Callable[[ModelExample], None]) -> Callable[[Trial], None]:
    """Return a property test of a trial from one of a model example."""
    return lambda trial: body(ModelExample(trial))
