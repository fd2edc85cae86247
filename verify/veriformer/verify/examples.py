"""Running Hypothesis by a seed of our own, so that the same seed draws the same examples everywhere."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from unittest import mock

import hypothesis
import hypothesis.strategies as st
import numpy as np
from hypothesis.database import ExampleDatabase
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.internal.conjecture.providers import HypothesisProvider

from veriformer.verify.judging.exceptions import ending
from veriformer.verify.strategies import seeds

EXAMPLES_PER_SEED = 9
"""Examples per run of Hypothesis. Where ten are asked for, one of them is nearly the simplest; after ten it begins to
vary what it has drawn, and one draw then decides for many."""


def prepared(
    body: Callable[[st.DataObject], None],
    seed: str,
    examples: int,
    *,
    further: bool = False,
    shrink: bool = False,
    phases: Sequence[hypothesis.Phase] = (hypothesis.Phase.generate,),
    database: ExampleDatabase | None = None,
    key: str = "",
) -> Callable[[], None]:
    """Return a function that runs the body on so many examples, equal for equal seeds.

    further: the simplest example, with which Hypothesis begins every run, has been met in another run and is left out.
    database, key: where examples that fail are kept, and those with the largest targets, for Hypothesis to reuse.
    """
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=database,
        derandomize=False,
        print_blob=False,
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[*phases, *([hypothesis.Phase.shrink] if shrink else [])],
    )
    # The seed comes before the settings, which it would leave without a database.
    judged = _with_streams(_but_the_simplest(body) if further else body, number(seed))
    found: Callable[[], None] = settings(hypothesis.seed(number(seed))(hypothesis.given(st.data())(judged)))
    # The key in the example database, if there is one; left alone, Hypothesis parses our source for one.
    vars(found)["_hypothesis_internal_database_key"] = key.encode()

    def run() -> None:
        try:
            found()
        except BaseException as error:
            raise ending(error)  # noqa: B904

    return run


def _but_the_simplest(body: Callable[[st.DataObject], None]) -> Callable[[st.DataObject], None]:
    def another(data: st.DataObject) -> None:
        if not data.conjecture_data.draw(seeds()):
            raise UnsatisfiedAssumption
        body(data)

    return another


def _with_streams(body: Callable[[st.DataObject], None], seed: int) -> Callable[[st.DataObject], None]:
    """Wrap the body so that the global generators of ``random`` and NumPy continue from example to example.

    Hypothesis sets both to zero before each example. A target that is wrong one time in ten by one of them would be
    wrong at the same call of every example, or at none, and never found to differ when repeated.
    """
    drawn = random.Random(seed).getstate()
    legacy = np.random.RandomState(seed % 2**32).get_state()

    @functools.wraps(body)
    def running_on(data: st.DataObject) -> None:
        nonlocal drawn, legacy
        random.setstate(drawn)
        np.random.set_state(legacy)  # noqa: NPY002
        try:
            body(data)
        finally:
            drawn, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002

    return running_on


@contextlib.contextmanager
def without_constants() -> Iterator[None]:
    """Let Hypothesis draw from its distributions alone.

    Of itself it takes one draw in twenty from the constants of whatever code is loaded, so that no seed could repeat a
    run elsewhere, and has no setting for that; versions that do not have the method have not the habit either.
    """
    if not hasattr(HypothesisProvider, "_maybe_draw_constant"):
        yield
        return
    with mock.patch.object(HypothesisProvider, "_maybe_draw_constant", new=_no_constant):
        yield


def _no_constant(*_: object, **__: object) -> None:
    return None


def number(text: str) -> int:
    """Derive a 63-bit seed from text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
